// The client of the API. The token comes with the link that the server prints, behind `#`, so no server sees it in an address.

const KEY = "backstitch-token";
let token = null;

/** Takes the token out of the address. */
export function readToken() {
  const match = /^#token=([0-9a-zA-Z_-]+)(?:&to=(.*))?$/.exec(location.hash);
  if (match) {
    sessionStorage.setItem(KEY, match[1]);
    history.replaceState(null, "", `#${match[2] ? decodeURIComponent(match[2]) : "/"}`);
  }
  token = sessionStorage.getItem(KEY);
  return token !== null;
}

/** Uses a token that a person typed. */
export function setToken(text) {
  sessionStorage.setItem(KEY, text);
  token = text;
}

/** An error that the server answered with, or that kept the answer away. */
export class ApiError extends Error {
  constructor(status, problem) {
    super(problem.detail ?? problem.title ?? `The server answered with ${status}.`);
    this.status = status;
    this.code = problem.code ?? "unknown";
    this.title = problem.title;
  }
}

function address(path, query) {
  const url = new URL(`api/v1${path}`, document.baseURI);
  for (const [name, value] of Object.entries(query ?? {})) {
    for (const each of [value].flat()) {
      if (each !== null && each !== undefined && each !== "" && each !== false) url.searchParams.append(name, each);
    }
  }
  return url;
}

async function request(method, path, { query, body, signal } = {}) {
  let response;
  try {
    response = await fetch(address(path, query), {
      method,
      signal,
      headers: { authorization: `Bearer ${token ?? ""}`, ...(body === undefined ? {} : { "content-type": "application/json" }) },
      body: body === undefined ? undefined : JSON.stringify(body),
      cache: "no-store",
      credentials: "omit",
      redirect: "error",
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(0, { title: "No connection", detail: "The server does not answer. Is `backstitch ui` still running?", code: "no_connection" });
  }
  if (!response.ok) {
    let problem = {};
    try { problem = await response.json(); } catch { /* not JSON: the status says enough */ }
    throw new ApiError(response.status, problem);
  }
  return response;
}

export const get = async (path, query, signal) => (await request("GET", path, { query, signal })).json();
export const post = async (path, body = {}, query) => (await request("POST", path, { body, query })).json();
export const remove = async (path, query) => (await request("DELETE", path, { query })).json();
export const blob = async (path, query) => (await request("GET", path, { query })).blob();

/** Reads the pages of a list from `query.from` on, at most `most` rows. */
export async function all(path, field, query = {}, most = 10000, signal) {
  const rows = [];
  let from = query.from ?? null;
  do {
    const page = await get(path, { ...query, limit: Math.min(1000, most - rows.length), from }, signal);
    rows.push(...page[field]);
    from = page.next;
  } while (from !== null && rows.length < most);
  return rows;
}

/** Saves an answer as a file. */
export async function download(path, query, name) {
  const url = URL.createObjectURL(await blob(path, query));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

function parse(block) {
  const event = { name: "message", id: null, data: "" };
  for (const line of block.split("\n")) {
    if (line.startsWith("event:")) event.name = line.slice(6).trim();
    else if (line.startsWith("id:")) event.id = line.slice(3).trim();
    else if (line.startsWith("data:")) event.data += line.slice(5).trimStart();
  }
  return event.data ? event : null;
}

/**
 * Follows the events of a session until `signal` aborts it. Reconnects by itself from the last record it has seen, so no record is
 * missed; `on.state` is called with `live`, `waiting` or `ended`.
 */
export async function follow(session, from, on, signal) {
  let next = from;
  return stream(`/sessions/${session}/events`, () => ({ from: String(next) }), { ...on, record: (record) => { next = record.position + 1; on.record?.(record); } }, signal);
}

/** Follows the list of sessions until `signal` aborts it: `on.session` gets a row that is new or changed, `on.removed` one that is gone. */
export const followList = (on, signal) => stream("/sessions/events", () => ({}), on, signal);

async function stream(path, query, on, signal) {
  let wait = 500;
  while (!signal.aborted) {
    try {
      const response = await request("GET", path, { query: query(), signal });
      on.state?.("live");
      wait = 500;
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      let rest = "";
      for (;;) {
        const { value, done } = await reader.read();
        if (done) break;
        rest += value;
        let end;
        while ((end = rest.indexOf("\n\n")) >= 0) {
          const event = parse(rest.slice(0, end));
          rest = rest.slice(end + 2);
          if (!event) continue;
          const data = JSON.parse(event.data);
          on[event.name]?.(data);
          if (event.name === "end" && data.reason === "removed") { on.state?.("ended"); return; }
        }
      }
    } catch (error) {
      if (signal.aborted) return;
      if (error.status === 404 || error.status === 401) { on.state?.("ended"); on.error?.(error); return; }
    }
    on.state?.("waiting");
    await new Promise((resolve) => setTimeout(resolve, wait));
    wait = Math.min(wait * 2, 10000);
  }
}

/** What a request answers, or `instead` if it is refused. A view that was left goes no further. */
export const attempt = (request, signal, instead = null) => request.catch((error) => { if (signal?.aborted) throw error; return instead; });
