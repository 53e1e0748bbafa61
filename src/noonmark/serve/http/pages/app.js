// The frame around the pages: which one is shown, health, theme, who is signed in.

import { signIn, user } from "/console/api.js";
import { every, h, say } from "/console/dom.js";
import * as dataflow from "/console/page_dataflow.js";
import * as live from "/console/page_live.js";
import * as sources from "/console/page_sources.js";
import * as sql from "/console/page_sql.js";
import * as time from "/console/page_time.js";
import * as views from "/console/page_views.js";

const PAGES = { sql, dataflow, time, sources, views, live };
let leave = () => {};

function show() {
  const [, name = "sql", ...rest] = location.hash.split("/");
  const page = PAGES[name] || sql;
  leave();
  const root = document.getElementById("page");
  root.replaceChildren();
  document.title = `${page.title} · Noonmark`;
  for (const link of document.querySelectorAll("#nav a")) {
    if (link.hash === `#/${PAGES[name] ? name : "sql"}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  leave = page.mount(root, rest.map(decodeURIComponent)) || (() => {});
}

function theme(chosen) {
  document.documentElement.dataset.theme = chosen;
}

async function health() {
  const badge = document.getElementById("health");
  try {
    const response = await fetch("/readyz");
    const why = (await response.text()).trim();
    badge.className = `badge ${response.ok ? "good" : "bad"}`;
    badge.textContent = response.ok ? "ready" : "not ready";
    badge.title = response.ok ? "Every part that serves people does" : why;
  } catch {
    badge.className = "badge bad";
    badge.textContent = "no server";
  }
}

document.getElementById("nav").append(...Object.entries(PAGES).map(([name, page]) => h("a", { href: `#/${name}` }, page.title)));
const dark = matchMedia("(prefers-color-scheme: dark)");
theme(localStorage.getItem("noonmark.theme") || (dark.matches ? "dark" : "light"));
document.getElementById("theme").addEventListener("click", () => {
  const next = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
  localStorage.setItem("noonmark.theme", next);
  theme(next);
});
const signed = () => { document.getElementById("user").textContent = user(); };
document.getElementById("user").addEventListener("click", () => signIn().then(show, () => {}));
window.addEventListener("login", signed);
window.addEventListener("hashchange", show);
window.addEventListener("unhandledrejection", (event) => {
  if (event.reason?.name === "AbortError") return;
  event.preventDefault();
  say(event.reason?.message || String(event.reason));
});
signed();
every(3000, health);
show();
