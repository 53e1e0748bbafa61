// An editor for SQL: a text area over its own coloured copy, with completion from the catalog.

import { columns, objects } from "/console/catalog.js";
import { h } from "/console/dom.js";

const WORDS = (
  "select from where group by having order asc desc nulls first last limit offset distinct on as and or not in is null true false case when then else end "
  + "join left right full inner outer cross lateral using union all except intersect with recursive values insert into update set "
  + "delete create drop alter table view materialized source sink index connection secret schema role default primary key "
  + "references show explain timestamp for subscribe to of up at least envelope upsert debezium audit begin commit rollback "
  + "grant revoke comment copy count sum avg min max over partition row_number coalesce interval cast exists between like ilike "
  + "load generator auction counter tick retain history maintenance strict progress snapshot refresh tables kafka postgres format json"
).split(" ");
const KNOWN = new Set(WORDS);
const TOKEN = /(--[^\n]*|\/\*[\s\S]*?\*\/)|('(?:[^']|'')*'?|\$\$[\s\S]*?(?:\$\$|$))|("(?:[^"]|"")*"?)|(\b\d+(?:\.\d+)?\b)|([A-Za-z_][\w$]*)|([\s\S])/g;

function coloured(source) {
  const parts = [];
  for (const [all, comment, string, , number, word] of source.matchAll(TOKEN)) {
    const kind = comment ? "com" : string ? "str" : number ? "num" : word && KNOWN.has(word.toLowerCase()) ? "kw" : null;
    const last = parts.at(-1);
    if (!kind && typeof last === "string") parts[parts.length - 1] = last + all;
    else parts.push(kind ? h("span", { class: kind }, all) : all);
  }
  return parts;
}

/** The element, with `value`, `chosen` (what is selected, or all) and `onrun`. */
export function editor(start, run) {
  const copy = h("pre", { ariaHidden: "true" });
  const area = h("textarea", {
    spellcheck: false, autocapitalize: "off", autocomplete: "off", value: start, ariaLabel: "SQL",
    role: "combobox", ariaExpanded: "false", ariaAutoComplete: "list", rows: 7,
  });
  const list = h("ul", { class: "choices", role: "listbox", id: "choices", ariaLabel: "Completions", hidden: true });
  area.setAttribute("aria-controls", "choices");
  const frame = h("div", { class: "editor" }, copy, area, list);
  const state = { names: [], at: 0, found: [], pointed: {} };
  const paint = () => copy.replaceChildren(...coloured(area.value), "\n");
  const close = () => { list.hidden = true; area.ariaExpanded = "false"; };

  async function learn() {
    const [found, fields] = await Promise.all([objects(), columns()]);
    const of = new Map(found.map((each) => [each.id, each.full]));
    state.names = [
      ...found.map((each) => ({ word: each.full, about: each.kind })),
      ...fields.filter((each) => of.has(each.id)).map((each) => ({ word: each.name, about: `${of.get(each.id)} · ${each.type}` })),
      ...WORDS.map((word) => ({ word, about: "" })),
    ];
  }

  function prefix() {
    return /[\w.$]*$/.exec(area.value.slice(0, area.selectionStart))[0];
  }

  function offer(forced) {
    const begun = prefix().toLowerCase();
    if (begun.length < (forced ? 0 : 2)) return close();
    const seen = new Set();
    state.found = state.names.filter(({ word }) => word.toLowerCase().startsWith(begun)
      && word.toLowerCase() !== begun && !seen.has(word) && seen.add(word)).slice(0, 40);
    state.at = 0;
    if (!state.found.length) return close();
    draw();
    place();
    list.hidden = false;
    area.ariaExpanded = "true";
    return undefined;
  }

  function draw() {
    list.replaceChildren(...state.found.map((each, at) => h("li", {
      role: "option", id: `choice-${at}`, ariaSelected: String(at === state.at),
      onmousedown: (event) => { event.preventDefault(); take(at); },
    }, each.word, h("span", { class: "muted" }, each.about))));
    area.setAttribute("aria-activedescendant", `choice-${state.at}`);
    list.children[state.at]?.scrollIntoView({ block: "nearest" });
  }

  function place() {
    const lines = area.value.slice(0, area.selectionStart).split("\n");
    const style = getComputedStyle(area);
    const line = parseFloat(style.lineHeight);
    const pad = parseFloat(style.paddingTop);
    list.style.top = `${pad + line * lines.length + 2 - area.scrollTop}px`;
    list.style.left = `${Math.min(pad + lines.at(-1).length * line * 0.4, frame.clientWidth - 240)}px`;
  }

  function take(at) {
    const begun = prefix();
    const end = area.selectionStart;
    area.setRangeText(state.found[at].word, end - begun.length, end, "end");
    close();
    paint();
  }

  area.addEventListener("input", () => { state.pointed = {}; paint(); offer(false); });
  area.addEventListener("blur", close);
  area.addEventListener("scroll", () => { copy.scrollTop = area.scrollTop; });
  area.addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key === "Enter") {
      event.preventDefault();
      close();
      return run();
    }
    if (event.ctrlKey && event.key === " ") { event.preventDefault(); return offer(true); }
    if (list.hidden) return undefined;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      state.at = (state.at + (event.key === "ArrowDown" ? 1 : -1) + state.found.length) % state.found.length;
      return draw();
    }
    if (event.key === "Tab" || event.key === "Enter") { event.preventDefault(); return take(state.at); }
    if (event.key === "Escape") { event.preventDefault(); return close(); }
    return undefined;
  });
  paint();
  learn().catch(() => {});
  return {
    frame,
    learn,
    get value() { return area.value; },
    set value(given) { area.value = given; paint(); area.focus(); },
    /** What is to be run, and where it begins: what the user selected (an error's place is not that), or all. */
    get chosen() {
      const own = area.selectionStart !== state.pointed.at || area.selectionEnd !== state.pointed.end;
      const text = own ? area.value.slice(area.selectionStart, area.selectionEnd) : "";
      return text.trim() ? { text, at: area.selectionStart } : { text: area.value, at: 0 };
    },
    point(position) {
      const at = position - 1;
      const end = at + Math.max(1, /^[\w$]*/.exec(area.value.slice(at))[0].length);
      area.focus();
      area.setSelectionRange(at, end);
      state.pointed = { at: area.selectionStart, end: area.selectionEnd };
    },
  };
}
