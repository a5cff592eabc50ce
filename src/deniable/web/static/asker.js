// One question at a time: while an answer is under way, only the latest of the next questions is kept.

const REMEMBERED = 300;
const known = new Map();

export class Asker {
  #busy = false;
  #next = null;
  #wanted = null;

  constructor(answered, waiting) {
    this.answered = answered;
    this.waiting = waiting;
  }

  ask(url) {
    this.#wanted = url;
    if (known.has(url)) {
      this.#next = null;
      this.waiting(this.#busy);
      this.answered(known.get(url), url);
    } else if (this.#busy) {
      this.#next = url;
    } else {
      this.#send(url);
    }
  }

  /** Ask ahead, while nobody waits: the next moves of a slider are then answered at once. */
  async prefetch(urls) {
    for (const url of urls) {
      if (this.#busy || this.#wanted === null) return;
      const wanted = this.#wanted;
      if (!known.has(url)) await fetched(url);
      if (wanted !== this.#wanted) return;
    }
  }

  async #send(url) {
    this.#busy = true;
    this.waiting(true);
    const answer = await fetched(url);
    this.#busy = false;
    const next = this.#next;
    this.#next = null;
    this.waiting(next !== null);
    // on the way to a later answer an earlier one is shown too, but never after it
    if (url === this.#wanted || (next !== null && answer.ok)) this.answered(answer, url);
    if (next !== null) this.ask(next);
  }
}

/** The answer to an address; what stands after a line's end in it is sent as the body. */
async function fetched(url) {
  const [address, body] = url.split("\n", 2);
  const sent = body === undefined ? {} : { method: "POST", body };
  const headers = { Accept: "application/json", ...(body === undefined ? {} : { "Content-Type": "application/json" }) };
  try {
    const response = await fetch(address, { ...sent, headers });
    const answer = { ok: response.ok, body: await response.json() };
    if (response.status < 500) remember(url, answer);
    return answer;
  } catch {
    return { ok: false, body: { error: { field: null, message: "The server does not answer. Is it still running?" } } };
  }
}

function remember(url, answer) {
  known.set(url, answer);
  if (known.size > REMEMBERED) known.delete(known.keys().next().value);
}
