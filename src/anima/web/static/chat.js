// A conversation: what was said, then events as they come. Text becomes text nodes; nothing in it is run, loaded or followed.
"use strict";
(() => {
  const { ask, blocks, send, say, refresh, acts } = window.anima;
  const $ = (where, from = document) => from.querySelector(where);

  function made(tag, name, ...children) {
    const element = document.createElement(tag);
    if (name) element.className = name;
    element.append(...children);
    return element;
  }

  // -- text, as pages show it: what is not seen is shown by number ---------------------------------------------------------

  const ODD = /[^\P{C}\n\t]|[^\P{Z} ]/gu;
  function inert(text) {
    const whole = document.createDocumentFragment();
    let at = 0;
    for (const found of text.matchAll(ODD)) {
      whole.append(text.slice(at, found.index), made("span", "odd", `⟨U+${found[0].codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`));
      at = found.index + found[0].length;
    }
    whole.append(text.slice(at));
    return whole;
  }

  // Markdown line by line, by the rules of the pages: a likeness. Where a link leads is shown, and cannot be followed.
  const INLINE = /(`[^`]+`)|(\*\*[^*]+\*\*|__[^_]+__)|(\*[^*\s][^*]*\*)|(\[\[[^[\]]+\]\])|\[([^[\]]*)\]\(([^()\s]*)\)/g;
  function emphasised(text) {
    const whole = document.createDocumentFragment();
    if (text.length > 4000) { whole.append(inert(text)); return whole; }
    let at = 0;
    for (const found of text.matchAll(INLINE)) {
      const [all, code, bold, em, wiki, said, to] = found;
      whole.append(inert(text.slice(at, found.index)));
      if (code) whole.append(made("code", "", inert(code.slice(1, -1))));
      else if (bold) whole.append(made("b", "", inert(bold.slice(2, -2))));
      else if (em) whole.append(made("i", "", inert(em.slice(1, -1))));
      else if (wiki) whole.append(made("span", "to", inert(wiki)));
      else whole.append(inert(said), " ", made("span", "to", "(", inert(to), ")"));
      at = found.index + all.length;
    }
    whole.append(inert(text.slice(at)));
    return whole;
  }

  function line(kind, body, sign = "") {
    return made("div", `line ${kind}`, ...(sign ? [made("span", "sign", sign)] : []), made("span", "said", body));
  }

  function prose(text) {
    const whole = document.createDocumentFragment();
    let fence = "";
    for (const raw of text.split("\n")) {
      const opened = raw.match(/^[ \t>]*(?:[-*+][ \t]+)?(`{3,}|~{3,})/);
      const heading = raw.match(/^ {0,3}(#{1,6})(?:[ \t]+|$)/), item = raw.match(/^([ \t]*)([-*+]|[0-9]{1,9}[.)])[ \t]+(?:\[([ xX])\][ \t]+)?/);
      const quote = raw.match(/^[ \t]*(?:>[ \t]?)+/);
      if (fence || opened) {
        if (!fence) fence = opened[1];
        else if (opened && opened[1].startsWith(fence) && !raw.replace(/[ \t>`~]/g, "")) fence = "";
        whole.append(line("code", inert(raw)));
      } else if (!raw.trim()) whole.append(line("blank", ""));
      else if (heading) whole.append(line(`h${heading[1].length}`, emphasised(raw.slice(heading[0].length))));
      else if (/^ {0,3}(?:(?:-[ \t]*){3,}|(?:\*[ \t]*){3,}|(?:_[ \t]*){3,})$/.test(raw)) whole.append(line("rule", ""));
      else if (item) {
        const box = item[3] === undefined ? "" : item[3] === " " ? "☐" : "☑";
        const depth = Math.min(4, Math.floor(item[1].replaceAll("\t", "    ").length / 2));
        whole.append(line(`item${depth ? ` in${depth}` : ""}`, emphasised(raw.slice(item[0].length)), box || ("-*+".includes(item[2]) ? "•" : item[2])));
      } else if (quote) whole.append(line("quote", emphasised(raw.slice(quote[0].length))));
      else whole.append(line("text", emphasised(raw)));
    }
    return whole;
  }

  // -- the conversation ------------------------------------------------------------------------------------------------------

  const talk = $("#talk"), form = $("#say"), words = $("#words"), stop = $("[data-act=stop-turn]"), used = $("#used");
  const id = talk && talk.dataset.chat;
  let answer = null, said = "", small = null, last = 0, drawing = 0;

  const isLow = () => innerHeight + scrollY >= document.documentElement.scrollHeight - 160;
  function add(element) {
    const low = isLow();
    talk.append(element);
    if (low) scrollTo(0, document.documentElement.scrollHeight);
    return element;
  }

  function person(text, note = "") {
    closed();
    const title = $("h1[data-new]");
    if (title) { title.replaceChildren(inert(text.slice(0, 80))); title.removeAttribute("data-new"); }
    const who = made("p", "who", made("b", "", "You"));
    if (note) who.append(made("span", "dim", note));
    const element = add(made("li", `turn user${note ? " waiting" : ""}`, who, made("div", "text", inert(text))));
    element.dir = "auto";
    return element;
  }

  function closed() { draw(); answer = small = null; said = ""; }

  function draw() {
    cancelAnimationFrame(drawing);
    drawing = 0;
    if (answer) { const low = isLow(); answer.replaceChildren(prose(said)); if (low) scrollTo(0, document.documentElement.scrollHeight); }
  }

  function spoken(text) {
    if (!answer) {
      small = null;
      answer = made("div", "prose");
      const element = add(made("li", "turn assistant", made("p", "who", made("b", "", talk.dataset.agent)), answer));
      element.dir = "auto";
    }
    said += text;
    drawing = drawing || requestAnimationFrame(draw);
  }

  // Thoughts and calls since the last words: one quiet line that unfolds.
  function quietly(name) {
    if (!small) {
      closed();
      small = made("details", "", made("summary", "dim"));
      small.names = [];
      add(made("li", "turn tool", small));
    }
    if (small.names[small.names.length - 1] !== name) small.names.push(name);
    $("summary", small).replaceChildren(inert(small.names.join(" · ")));
    return small;
  }

  function thought(text) {
    const box = quietly("thought");
    const before = box.lastElementChild;
    if (before.matches(".thought")) before.append(inert(text)); else box.append(made("div", "text thought", inert(text)));
  }

  function called(name, given, result) {
    const told = Object.entries(given || {}).filter(([, value]) => value !== "" && value !== null);
    const asked = told.map(([key, value]) => `${key}: ${typeof value === "string" ? value : JSON.stringify(value)}`);
    const box = quietly(told.length === 1 ? `${name} “${String(told[0][1]).slice(0, 60)}”` : name);
    const step = made("div", "step", made("p", "", made("code", "", inert(name)), " ", inert(asked.join(", ").slice(0, 600))));
    step.given = given || {};
    box.append(step);
    if (result !== undefined) answered(step, name, result);
    return step;
  }

  function answered(step, name, result) {
    const text = typeof result === "string" ? result : JSON.stringify(result, null, 1);
    const hits = recalled(name, step.given, result, text);
    step.dataset.done = "";
    if (hits.length && name === "memory_search") step.append(made("ul", "recalled", ...hits.map(hit)));
    else step.append(...(hits.length ? [made("ul", "recalled", ...hits.map(hit))] : []), made("div", "text", inert(text.slice(0, 8000))));
  }

  // Which lines of which documents a search or a look brought back; a transcript has them as text.
  function recalled(name, given, result, text) {
    if (name === "memory_get" && given.path) return [{ path: given.path, line: Number(given.from) || 1, text: "" }];
    if (name !== "memory_search") return [];
    if (result.hits) return result.hits.filter((one) => one.path).map((one) => ({ path: one.path, line: one.start_line, text: one.text }));
    return [...text.matchAll(/^path: (.+)\nstart_line: (\d+)\nend_line: \d+\ntext: (.*)$/gm)].map((one) => ({ path: one[1], line: Number(one[2]), text: one[3] }));
  }

  function hit({ path, line: number, text }) {
    const place = "/memory/" + String(path).split("/").map(encodeURIComponent).join("/");
    function link(address, name) { const to = made("a", "", name); to.href = address; return to; }
    const item = made("li", "", made("span", "said", inert(String(text).trim() || String(path))), " ", made("span", "dim small", inert(`${path}:${number}`)), " ",
      link(`${place}?line=${Number(number) || 1}`, "why"), " ", link(`${place}?as=edit`, "correct"));
    if (text) {
      const forget = made("button", "quiet", "forget");
      forget.type = "button";
      forget.addEventListener("click", () => { words.value = `forget ${String(text).trim().replace(/^[-*+] /, "").split("\n")[0]}`; words.focus(); });
      item.append(" ", forget);
    }
    return item;
  }

  function between(text, name = "between") { closed(); add(made("li", name, made("span", "", inert(text)))); }
  function running(is) { stop.hidden = !is; talk.ariaBusy = String(is); }

  function tally(sum) {
    if (!sum) return;
    const cost = sum.cost ? `, about $${sum.cost.toFixed(4)}` : "";
    used.textContent = `${sum.input.toLocaleString()} tokens in, ${sum.output.toLocaleString()} out${cost}`;
  }

  const on = {
    turn({ text }) { for (const one of talk.querySelectorAll(".waiting")) one.remove(); if (text) person(text); running(true); },
    steer({ text }) { person(text, "heard at the next step, or right after"); },
    said({ text }) { const one = $(".waiting", talk); if (one) one.remove(); person(text); },
    delta({ text }) { spoken(text); },
    thinking({ text }) { if (text) thought(text); },
    tool({ name, arguments: given }) { called(name, given); },
    tool_result({ name, answer: result }) {
      const open = [...talk.querySelectorAll(".step:not([data-done])")].find((step) => $("code", step).textContent === name);
      if (open) answered(open, name, result);
    },
    card() { const low = isLow(); refresh($("#cards")).then(() => { if (low) scrollTo(0, document.documentElement.scrollHeight); }).catch(() => {}); },
    compaction({ text }) { between(`The conversation was shortened: ${text}`); },
    notice({ text }) { between(text); },
    waits({ text }) { between(text); },
    done({ used: sum, early }) { closed(); running(false); tally(sum); refresh($("#talks")).catch(() => {}); if (early) between("The answer broke off here."); },
    stopped() { running(false); between("Stopped; what was said is kept."); },
    error({ text, hint }) { running(false); between(hint ? `${text} (${hint})` : text, "between lost"); },
  };

  function entry(turn) {
    if (turn.call) called(turn.name || "tool", turn.call.arguments, turn.content);
    else if (turn.role === "assistant") { spoken(turn.content); closed(); }
    else if (turn.role === "user" && !turn.name) person(turn.content);
    else called(turn.name || turn.role, {}, turn.content);
  }

  async function load() {
    const { value } = await send("GET", `/chat/${encodeURIComponent(id)}`);
    talk.replaceChildren();
    answer = small = null;
    said = "";
    if (value.total > value.turns.length) between(`${value.total - value.turns.length} earlier entries are under Sessions.`);
    for (const turn of value.turns) entry(turn);
    closed();
    running(value.running);
    tally(value.used);
    last = value.after;
    scrollTo(0, document.documentElement.scrollHeight);
  }

  async function follow() {
    const ending = new AbortController();
    addEventListener("pagehide", () => ending.abort());
    while (!ending.signal.aborted) {
      try {
        if (!last) await load();
        const answers = await ask(`/api/v1/chat/${encodeURIComponent(id)}/events`, { signal: ending.signal, headers: { "Last-Event-ID": String(last) } });
        if (answers.status === 401) return;
        if (answers.status === 404) { between("There is no such conversation.", "between lost"); return; }
        for await (const { id: number, event, data } of blocks(answers.body)) {
          if (event === "resync") { last = 0; break; }
          if (number) last = Number(number);
          if (on[event]) on[event](JSON.parse(data));
        }
        if (!last) continue;
      } catch (error) {
        if (error.problem && error.problem.status === 404) { between("There is no such conversation.", "between lost"); return; }
      }
      await new Promise((done) => { setTimeout(done, 1000); });
    }
  }

  // -- saying ------------------------------------------------------------------------------------------------------------------

  async function tell() {
    const text = words.value, wrong = $(".wrong", form);
    if (!text.trim() || form.ariaBusy === "true") return;
    form.ariaBusy = "true";
    wrong.hidden = true;
    try {
      const { value } = await send("POST", id ? `/chat/${encodeURIComponent(id)}` : "/chat", { text });
      words.value = "";
      if (!id) location.href = `/chat/${encodeURIComponent(value.id)}`;
    } catch (error) {
      wrong.textContent = error.message;
      wrong.hidden = false;
    } finally { form.ariaBusy = "false"; }
  }

  acts["stop-turn"] = async () => { await send("POST", `/chat/${encodeURIComponent(id)}/stop`); words.focus(); };
  form.addEventListener("submit", (event) => { event.preventDefault(); tell(); });
  words.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) { event.preventDefault(); tell(); }
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !stop.hidden) { event.preventDefault(); acts["stop-turn"]().catch((error) => say(error.message)); }
  });
  if (id) follow();
  if (!$("[role=alert]:not([hidden])") && !matchMedia("(hover: none)").matches) words.focus();
})();
