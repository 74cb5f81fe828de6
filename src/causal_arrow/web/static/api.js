// @ts-check
// Requests to the server. Each fails with an Error whose message can be shown as it is.

const TOKEN = "causal-arrow-token";

/** The token of the address that the server printed, kept for this tab and taken out of the address bar. */
function token() {
  const given = new URLSearchParams(location.hash.slice(1));
  if (given.has("token")) {
    sessionStorage.setItem(TOKEN, given.get("token"));
    given.delete("token");
    history.replaceState(null, "", location.pathname + (given.size ? `#${given}` : ""));
  }
  return sessionStorage.getItem(TOKEN);
}

const known = token();

export class RequestError extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

async function send(method, path, body, headers = {}) {
  if (known) headers.Authorization = `Bearer ${known}`;
  let response;
  try {
    response = await fetch(`/api${path}`, { method, body, headers });
  } catch {
    throw new RequestError("The server does not answer: is it still running?", 0);
  }
  if (response.ok) return response;
  let message = `The server answered with status ${response.status}.`;
  try {
    message = (await response.json()).message ?? message;
  } catch { /* an answer that is not ours */ }
  throw new RequestError(message, response.status);
}

const asJson = async (response) => (await response).json();
const sendJson = (method, path, content) =>
  asJson(send(method, path, JSON.stringify(content), { "Content-Type": "application/json" }));
const query = (settings) => new URLSearchParams(settings).toString();
const at = (session, path = "") => `/sessions/${encodeURIComponent(session)}${path}`;

export const server = () => asJson(send("GET", "/server"));
export const openFile = (file) =>
  asJson(send("POST", `/sessions?${query({ name: file.name })}`, file, { "Content-Type": "application/octet-stream" }));
export const openExample = (name) => asJson(send("POST", `/examples/${encodeURIComponent(name)}`));
export const session = (key) => asJson(send("GET", at(key)));
export const close = (key) => send("DELETE", at(key));
export const start = (key, choices) => sendJson("POST", at(key, "/discovery"), choices);
export const stop = (key) => asJson(send("DELETE", at(key, "/discovery")));
export const argue = (key, argument) => sendJson("PUT", at(key, "/graph"), argument);
export const places = (key, drawing) => sendJson("POST", at(key, "/places"), drawing);
export const edge = (key, source, target) => asJson(send("GET", at(key, `/edge?${query({ source, target })}`)));
export const question = (key, cause, effect) => asJson(send("GET", at(key, `/question?${query({ cause, effect })}`)));
export const effect = (key, asked) => asJson(send("GET", at(key, `/effect?${query(asked)}`)));
export const effects = (key, asked) => asJson(send("GET", at(key, `/effects?${query(asked)}`)));
export const evidence = (key) => asJson(send("GET", at(key, "/evidence")));
export const probabilities = (key) => asJson(send("GET", at(key, "/probabilities")));
export const experiments = (key, about) => asJson(send("GET", at(key, `/experiments?${query(about)}`)));
export const learn = (key, variable, file) => asJson(send("POST", at(key, `/experiments?${query({ variable, name: file.name })}`),
  file, { "Content-Type": "application/octet-stream" }));
export const resample = (key) => sendJson("POST", at(key, "/stability"), {});
export const stability = (key) => asJson(send("GET", at(key, "/stability")));
export const stopResampling = (key) => asJson(send("DELETE", at(key, "/stability")));
export const startSeries = (key, choices) => sendJson("POST", at(key, "/series"), choices);
export const series = (key) => asJson(send("GET", at(key, "/series")));
export const seriesResponse = (key, asked) => asJson(send("GET", at(key, `/series/response?${query(asked)}`)));
export const keep = (key, name) => sendJson("POST", at(key, "/kept"), { name });
export const keepFile = (key, file) => asJson(send("POST", at(key, `/kept/file?${query({ name: file.name })}`), file,
  { "Content-Type": "application/octet-stream" }));
export const forget = (key, number) => asJson(send("DELETE", at(key, `/kept/${number}`)));
export const comparison = (key, left, right) => asJson(send("GET", at(key, `/comparison?${query({ left, right })}`)));
export const file = async (key, name) => (await send("GET", at(key, `/files/${name}`))).blob();
