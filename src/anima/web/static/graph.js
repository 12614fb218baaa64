// The graph: a drawing made from the list beside it. Forces find the places, always the same ones for the same list.
"use strict";
(() => {
  const stage = document.querySelector("#graph .drawing");
  if (!stage) return;
  const SVG = "http://www.w3.org/2000/svg";
  const make = (tag, attributes = {}, inside = []) => {
    const made = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.append(...inside);
    return made;
  };
  const panel = document.getElementById("about");
  const narrow = document.getElementById("narrow");
  const boxes = [...document.querySelectorAll("#graph .kinds input")];
  const kept = new Map();  // where each name stood, so that a change moves the drawing little
  let nodes = [], edges = [], chosen = null, svg, world, view = { x: 0, y: 0, k: 1 }, run = 0;

  // -- the list is the data ------------------------------------------------------------------------------------------

  function read() {
    nodes = [...document.querySelectorAll("#names > li")].map((item, place) => ({
      place, item, link: item.querySelector("a"), name: item.querySelector(".label").textContent,
      kind: item.dataset.kind, mentions: Number(item.dataset.mentions), age: item.dataset.age, near: new Set(), x: 0, y: 0,
    }));
    edges = [];
    for (const node of nodes) {
      for (const tie of node.item.dataset.ties.split(" ").filter(Boolean)) {
        const [to, weight] = tie.split("*");
        const other = nodes[Number(to)];
        edges.push({ one: node, other, weight: parseInt(weight, 10), linked: weight.endsWith("l") });
        node.near.add(other);
        other.near.add(node);
      }
    }
    for (const node of nodes) node.r = 5 + 2.2 * Math.sqrt(Math.min(node.mentions, 120));
  }

  const shown = () => {
    const kinds = new Set(boxes.filter((box) => box.checked).map((box) => box.value));
    return nodes.filter((node) => kinds.has(node.kind));
  };

  // -- places ----------------------------------------------------------------------------------------------------------
  // Everybody pushes everybody away, more so who has many ties; ties pull together; a little weight holds all at the
  // middle. It starts from a spiral, so nothing here is left to chance.

  function start(all) {
    const turn = Math.PI * (3 - Math.sqrt(5));
    all.forEach((node, n) => {
      const was = kept.get(node.name);
      node.x = was ? was.x : 26 * Math.sqrt(n + 1) * Math.cos(n * turn);
      node.y = was ? was.y : 26 * Math.sqrt(n + 1) * Math.sin(n * turn);
    });
  }

  function forces(all, ties) {
    const n = all.length, x = new Float64Array(n), y = new Float64Array(n), dx = new Float64Array(n), dy = new Float64Array(n);
    const mass = Float64Array.from(all, (node) => 1 + Math.min(node.near.size, 12)), r = Float64Array.from(all, (node) => node.r + 4);
    const at = new Map(all.map((node, place) => [node, place]));
    const pulls = ties.map((tie) => [at.get(tie.one), at.get(tie.other),  // a hub must not draw all into a ball
      0.06 * Math.log2(1.6 + tie.weight) / (1 + Math.max(tie.one.near.size, tie.other.near.size) / 16)]);
    all.forEach((node, place) => { x[place] = node.x; y[place] = node.y; });

    function step(heat) {
      for (let a = 0; a < n; a += 1) {
        const ax = x[a], ay = y[a], am = 46 * mass[a], ar = r[a];
        let sx = 0, sy = 0;
        for (let b = a + 1; b < n; b += 1) {
          let ux = ax - x[b], uy = ay - y[b], square = ux * ux + uy * uy;
          if (square < 1) { ux = 0.6 + (a % 7) / 9; uy = 0.6 - (b % 5) / 9; square = 1; }
          let push = am * mass[b] / square;
          const room = ar + r[b];
          if (square < room * room) push += 0.5 * (room / Math.sqrt(square) - 1);
          ux *= push; uy *= push;
          sx += ux; sy += uy;
          dx[b] -= ux; dy[b] -= uy;
        }
        dx[a] += sx; dy[a] += sy;
      }
      for (const [a, b, pull] of pulls) {
        const ux = (x[b] - x[a]) * pull, uy = (y[b] - y[a]) * pull;
        dx[a] += ux; dy[a] += uy;
        dx[b] -= ux; dy[b] -= uy;
      }
      for (let a = 0; a < n; a += 1) {
        const hold = 0.012 * mass[a] + (mass[a] > 1 ? 0 : 0.02);
        dx[a] -= x[a] * hold; dy[a] -= y[a] * hold;
        const far = Math.hypot(dx[a], dy[a]) || 1, go = Math.min(far, heat) / far;
        x[a] += dx[a] * go; y[a] += dy[a] * go;
        dx[a] = dy[a] = 0;
      }
    }

    return { step, settle: () => all.forEach((node, place) => { node.x = x[place]; node.y = y[place]; }) };
  }

  // In slices, so that the page stays alive; drawn once, when it is done.
  function arrange(done) {
    const mine = ++run, all = shown(), there = new Set(all), ties = edges.filter((tie) => there.has(tie.one) && there.has(tie.other));
    const rounds = all.every((node) => kept.has(node.name)) ? 30 : 180;
    start(all);
    const { step, settle } = forces(all, ties);
    let n = 0;
    const slice = () => {
      if (mine !== run) return;
      const until = performance.now() + 24;
      while (n < rounds && performance.now() < until) { step(60 * (1 - n / rounds) + 1); n += 1; }
      if (n < rounds) { setTimeout(slice, 0); return; }
      settle();
      for (const node of all) kept.set(node.name, { x: node.x, y: node.y });
      draw(all, ties);
      done();
    };
    slice();
  }

  // -- drawing -----------------------------------------------------------------------------------------------------------

  const SHAPES = {
    person: (r) => make("circle", { r }),
    name: (r) => make("circle", { r }),
    topic: (r) => make("rect", { x: -r, y: -r, width: 2 * r, height: 2 * r, rx: 2 }),
    document: (r) => make("path", { d: `M0 ${-1.25 * r}L${1.25 * r} 0L0 ${1.25 * r}L${-1.25 * r} 0Z` }),
  };

  function draw(all, ties) {
    const lines = make("g", { class: "ties" });
    for (const tie of ties) {
      tie.line = make("line", { x1: tie.one.x, y1: tie.one.y, x2: tie.other.x, y2: tie.other.y, "stroke-width": Math.min(4, 0.6 + Math.log2(tie.weight + 1) / 2), class: tie.linked ? "linked" : "" });
      lines.append(tie.line);
    }
    const dots = make("g");
    for (const node of all) {
      node.dot = make("g", { class: `dot ${node.kind} age-${node.age}`, transform: `translate(${node.x} ${node.y})` }, [SHAPES[node.kind](node.r), make("title", {}, [`${node.name}, ${node.mentions}`])]);
      node.dot.addEventListener("click", () => choose(node, true));
      node.dot.addEventListener("pointerenter", () => light(node));
      node.dot.addEventListener("pointerleave", () => light(chosen));
      dots.append(node.dot);
    }
    labels = make("g", { class: "labels" });
    world = make("g", {}, [lines, dots]);
    svg = make("svg", { "aria-hidden": "true", focusable: "false" }, [world, labels]);
    stage.replaceChildren(svg);
    drawn = { all, ties };
  }

  let labels, drawn = { all: [], ties: [] };
  const size = () => ({ w: stage.clientWidth, h: stage.clientHeight });

  function fit() {
    const { w, h } = size(), all = drawn.all;
    if (!all.length) return;
    const xs = all.map((node) => node.x), ys = all.map((node) => node.y);
    const left = Math.min(...xs) - 40, right = Math.max(...xs) + 60, top = Math.min(...ys) - 30, low = Math.max(...ys) + 30;
    view.k = Math.min(2.2, w / (right - left), h / (low - top));
    view.x = w / 2 - view.k * (left + right) / 2;
    view.y = h / 2 - view.k * (top + low) / 2;
    place();
  }

  function zoom(by, x = size().w / 2, y = size().h / 2) {
    const k = Math.max(0.1, Math.min(8, view.k * by));
    view.x = x - (x - view.x) * k / view.k;
    view.y = y - (y - view.y) * k / view.k;
    view.k = k;
    place();
  }

  // Dots grow less than the drawing does, so that they can be seen from afar and do not cover all from near.
  const swell = () => Math.pow(view.k, -0.6);
  const radius = (node) => node.r * view.k * swell();

  let waiting = false;
  function place() {
    if (!world || waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      world.setAttribute("transform", `translate(${view.x} ${view.y}) scale(${view.k})`);
      for (const node of drawn.all) node.dot.setAttribute("transform", `translate(${node.x} ${node.y}) scale(${swell()})`);
      label();
    });
  }

  // Labels keep their size whatever the zoom. The most mentioned choose first; one that finds no room is left away
  // until somebody comes nearer, and the list has it all the while.
  function label() {
    const { w, h } = size(), taken = new Map(), cell = 64;
    const free = (box, dots) => {
      for (const key of cells(box)) for (const other of taken.get(key) || []) {
        if ((dots || !other.of) && box.x < other.x + other.w && other.x < box.x + box.w && box.y < other.y + other.h && other.y < box.y + box.h) return false;
      }
      return true;
    };
    const cells = (box) => {
      const keys = [];
      for (let x = Math.floor(box.x / cell); x <= Math.floor((box.x + box.w) / cell); x += 1) for (let y = Math.floor(box.y / cell); y <= Math.floor((box.y + box.h) / cell); y += 1) keys.push(`${x},${y}`);
      return keys;
    };
    const take = (box) => { for (const key of cells(box)) { if (!taken.has(key)) taken.set(key, []); taken.get(key).push(box); } };
    const first = (node) => (node === chosen ? 2 : chosen && chosen.near.has(node) ? 1 : 0);
    const order = [...drawn.all].sort((a, b) => first(b) - first(a) || b.mentions - a.mentions || a.place - b.place);
    for (const node of order.slice(0, 80)) {  // a name must not hide the larger dots either
      const r = radius(node);
      take({ x: node.x * view.k + view.x - r * 0.7, y: node.y * view.k + view.y - r * 0.7, w: 1.4 * r, h: 1.4 * r, of: node });
    }
    const texts = [], most = Math.max(24, w * h / 6000);  // more would be a wall of words
    for (const [rank, node] of order.entries()) {
      const x = node.x * view.k + view.x, y = node.y * view.k + view.y, r = radius(node);
      if (texts.length >= most && !first(node)) break;
      if (x < -40 || y < -20 || x > w + 40 || y > h + 20) continue;
      const text = node.name.length > 26 ? node.name.slice(0, 25) + "…" : node.name;
      const wide = text.length * 6.6 + 6, high = 15;
      const spots = [[x + r + 3, y - high / 2, "start"], [x - r - 3 - wide, y - high / 2, "end"], [x - wide / 2, y - r - high - 1, "middle"], [x - wide / 2, y + r + 1, "middle"]];
      const tries = spots.map((spot) => [...spot, true]);
      if (first(node) || rank < 30) tries.push(...spots.map((spot) => [...spot, false]), [x - wide / 2, y - high / 2, "middle", false]);
      for (const [bx, by, anchor, dots] of tries) {
        const box = { x: bx, y: by, w: wide, h: high };
        if (bx < 2 || bx + wide > w - 2 || !free(box, dots)) continue;
        take(box);
        const at = { start: bx, end: bx + wide, middle: bx + wide / 2 }[anchor];
        const made = make("text", { x: at, y: by + 11.5, "text-anchor": anchor, class: node === chosen ? "chosen" : chosen && !chosen.near.has(node) ? "far" : "" });
        made.textContent = text;
        texts.push(made);
        break;
      }
    }
    labels.replaceChildren(...texts);
  }

  function light(node) {
    if (!svg) return;
    svg.classList.toggle("lit", Boolean(node));
    for (const each of drawn.all) {
      each.dot.classList.toggle("near", Boolean(node) && (each === node || node.near.has(each)));
      each.dot.classList.toggle("chosen", each === chosen);
    }
    for (const tie of drawn.ties) tie.line.classList.toggle("near", Boolean(node) && (tie.one === node || tie.other === node));
  }

  // -- choosing ------------------------------------------------------------------------------------------------------------

  let asked = 0;
  async function choose(node, toList) {
    if (toList && node) node.item.scrollIntoView({ block: "nearest" });
    await tell(node.link.getAttribute("href"), node);
  }

  async function tell(address, node) {
    const mine = ++asked;
    chosen = node || null;
    for (const each of nodes) each.link.toggleAttribute("aria-current", each === chosen);
    light(chosen);
    place();
    const { ok, drawn: fresh } = await window.anima.part(`${address}&part=about`);
    if (mine !== asked) return;
    const close = document.createElement("button");
    close.type = "button";
    close.className = "quiet";
    close.textContent = "Close";
    close.addEventListener("click", () => { const back = chosen; chosen = null; asked += 1; panel.replaceChildren(); light(null); place(); (back ? back.link : narrow).focus(); for (const each of nodes) each.link.removeAttribute("aria-current"); });
    panel.replaceChildren(close, ...(ok ? fresh.childNodes : [fresh.querySelector("main p") || "It cannot be told."]));
    const title = panel.querySelector("h2");
    if (title) { title.tabIndex = -1; title.focus({ preventScroll: true }); panel.scrollIntoView({ block: "nearest" }); title.scrollIntoView({ block: "nearest" }); }
  }

  const byHref = (href) => nodes.find((node) => node.link.getAttribute("href") === href);

  document.addEventListener("click", (event) => {
    const link = event.target.closest('#names a, #about a[href^="/graph/about"]');
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    event.preventDefault();
    tell(link.getAttribute("href"), byHref(link.getAttribute("href"))).catch(() => window.anima.say("The home does not answer."));
  });

  function narrowed() {
    const words = narrow.value.trim().toLocaleLowerCase(), kinds = new Set(boxes.filter((box) => box.checked).map((box) => box.value));
    for (const node of nodes) node.item.hidden = !kinds.has(node.kind) || !node.name.toLocaleLowerCase().includes(words);
  }

  narrow.addEventListener("input", narrowed);
  narrow.addEventListener("keydown", (event) => {
    if (event.key !== "ArrowDown" && event.key !== "Enter") return;
    const first = nodes.find((node) => !node.item.hidden);
    if (first) { event.preventDefault(); first.link.focus(); if (event.key === "Enter") choose(first, false); }
  });
  for (const box of boxes) box.addEventListener("change", () => { narrowed(); arrange(fit); });

  // -- moving ----------------------------------------------------------------------------------------------------------------

  const held = new Map();
  let spread = 0;
  stage.addEventListener("pointerdown", (event) => { if (event.button === 0) held.set(event.pointerId, event); spread = 0; });
  stage.addEventListener("pointermove", (event) => {
    const was = held.get(event.pointerId);
    if (!was) return;
    const moved = Math.hypot(event.clientX - was.clientX, event.clientY - was.clientY);
    if (!stage.hasPointerCapture(event.pointerId) && moved > 3) stage.setPointerCapture(event.pointerId);
    if (held.size === 2) {
      held.set(event.pointerId, event);
      const [a, b] = [...held.values()], now = Math.hypot(a.clientX - b.clientX, a.clientY - b.clientY), at = stage.getBoundingClientRect();
      if (spread) zoom(now / spread, (a.clientX + b.clientX) / 2 - at.left, (a.clientY + b.clientY) / 2 - at.top);
      spread = now;
      return;
    }
    if (!stage.hasPointerCapture(event.pointerId)) return;
    view.x += event.clientX - was.clientX;
    view.y += event.clientY - was.clientY;
    held.set(event.pointerId, event);
    place();
  });
  for (const end of ["pointerup", "pointercancel"]) stage.addEventListener(end, (event) => { held.delete(event.pointerId); spread = 0; });
  stage.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && document.activeElement !== stage && !stage.contains(document.activeElement)) return;  // the page scrolls until the drawing is meant
    event.preventDefault();
    const at = stage.getBoundingClientRect();
    zoom(Math.exp(-event.deltaY / 400), event.clientX - at.left, event.clientY - at.top);
  }, { passive: false });
  stage.addEventListener("keydown", (event) => {
    const on = {
      ArrowLeft: () => { view.x += 40; place(); }, ArrowRight: () => { view.x -= 40; place(); },
      ArrowUp: () => { view.y += 40; place(); }, ArrowDown: () => { view.y -= 40; place(); },
      "+": () => zoom(1.25), "=": () => zoom(1.25), "-": () => zoom(0.8), 0: fit,
    }[event.key];
    if (on && !event.ctrlKey && !event.metaKey) { event.preventDefault(); on(); }
  });
  for (const button of document.querySelectorAll("#graph [data-zoom]")) {
    button.addEventListener("click", () => ({ in: () => zoom(1.4), out: () => zoom(1 / 1.4), fit })[button.dataset.zoom]());
  }
  addEventListener("resize", () => { clearTimeout(fit.timer); fit.timer = setTimeout(fit, 100); });

  document.addEventListener("refreshed", (event) => {
    if (event.target.id !== "names-live") return;
    const was = chosen && chosen.name;
    read();
    chosen = nodes.find((node) => node.name === was) || null;
    narrowed();
    arrange(() => { place(); light(chosen); });
  });

  read();
  stage.textContent = "Drawing …";
  arrange(() => { fit(); stage.dataset.ready = ""; });
})();
