// The public API and nothing else: POST /api/sql for answers, its WebSocket for streams.

const known = JSON.parse(sessionStorage.getItem("noonmark.login") || "null");
let login = known || { user: "noonmark", password: "" };

export const user = () => login.user;

export class SqlError extends Error {
  constructor(told) {
    super(told.message);
    this.told = told;
  }
}

function headers() {
  const found = { "Content-Type": "application/json" };
  if (login.password || login.user !== "noonmark") {
    const bytes = new TextEncoder().encode(`${login.user}:${login.password}`);
    found.Authorization = `Basic ${btoa(String.fromCharCode(...bytes))}`;
  }
  return found;
}

/** The results of one request, a transaction; an error of a statement is one of its results. */
export async function request(body, { signal, settings = {} } = {}) {
  const path = `/api/sql?${new URLSearchParams({ application_name: "console", ...settings })}`;
  const sent = { method: "POST", headers: headers(), body: JSON.stringify(body), signal, credentials: "omit" };
  const response = await fetch(path, sent);
  const answer = await response.json();
  if (response.status === 401) {
    await signIn(answer.error.message);
    return request(body, { signal, settings });
  }
  if (answer.error) throw new SqlError(answer.error);
  return answer.results;
}

/** The rows of one statement as objects by column name. */
export async function rows(query, params = [], options = {}) {
  const [result] = await request({ queries: [{ query, params }] }, options);
  if (result.error) throw new SqlError(result.error);
  const names = (result.desc?.columns || []).map((column) => column.name);
  return (result.rows || []).map((row) => Object.fromEntries(names.map((name, at) => [name, row[at]])));
}

/** What the console asks again and again need not wait for the newest write. */
export const glance = (query, params = []) =>
  rows(query, params, { settings: { transaction_isolation: "serializable" } });

/** One statement whose rows come as they are made. `close()` ends it, on the server too. */
export function stream(query, { columns, row, end, error, notice = () => {} }) {
  const scheme = location.protocol === "https:" ? "wss" : "ws";
  const socket = new WebSocket(`${scheme}://${location.host}/api/sql`);
  let asked = false;
  let closed = false;
  socket.onopen = () => socket.send(JSON.stringify({
    user: login.user, password: login.password || null, options: { application_name: "console" },
  }));
  socket.onmessage = ({ data }) => {
    const { type, payload } = JSON.parse(data);
    if (type === "Rows") columns(payload.columns);
    else if (type === "Row") row(payload);
    else if (type === "Notice") notice(payload);
    else if (type === "Error") error(payload);
    else if (type === "CommandComplete") end(payload);
    else if (type === "ReadyForQuery" && !asked) {
      asked = true;
      socket.send(JSON.stringify({ query }));
    }
  };
  socket.onclose = () => closed || error({ message: "the connection was closed" });
  return { close() { closed = true; socket.close(); } };
}

export function signIn(why = "") {
  const dialog = document.getElementById("login");
  const form = dialog.querySelector("form");
  document.getElementById("login-why").textContent = why;
  form.user.value = login.user;
  form.password.value = "";
  if (!dialog.open) dialog.showModal();
  return new Promise((resolve, reject) => {
    dialog.addEventListener("close", () => {
      if (dialog.returnValue !== "ok") return reject(new Error("not signed in"));
      login = { user: form.user.value, password: form.password.value };
      sessionStorage.setItem("noonmark.login", JSON.stringify(login));
      window.dispatchEvent(new Event("login"));
      return resolve();
    }, { once: true });
  });
}

/** A name as SQL spells it. */
export const quoted = (name) => (/^[a-z_][a-z0-9_$]*$/.test(name) ? name : `"${name.replaceAll('"', '""')}"`);
