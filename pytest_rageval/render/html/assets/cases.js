/* The case list of a report: filter, order, paging, case pages and keys. Everything is in the file; nothing is asked for. */
(() => {
  const { say, copy, markdown, pick, showTrial, stepTrial, decoded } = caseParts;
  const $ = (id) => document.getElementById(id);
  const element = (tag, name, text) => {
    const made = document.createElement(tag);
    if (name) made.className = name;
    if (text !== undefined) made.textContent = text;
    return made;
  };
  const blocks = $("blocks") ? $("blocks").textContent.split("\n") : [];
  const report = $("report"), page = $("case"), list = $("list"), plain = $("plain"), filter = $("filter");
  const MARKS = { passed: "✔", failed: "✘", error: "!", xfailed: "✘", skipped: "–" };
  const WORDS = { xfailed: "known" };
  const NUMBERS = ["drop", "level"];
  const KEPT = 12; // inflated blocks of case pages that are kept
  let index, order = [], position = -1, scrolled = 0, haystack, back = "#/cases";

  if (typeof DecompressionStream === "undefined") {
    $("no-inflate").hidden = false;
    return;
  }

  // ── data ────────────────────────────────────────────────────────────────────────────────────────────────────
  const inflated = new Map();
  const bytesOf = (line) => {
    if (Uint8Array.fromBase64) return Uint8Array.fromBase64(blocks[line]);
    const binary = atob(blocks[line]), bytes = new Uint8Array(binary.length);
    for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
    return bytes;
  };
  const inflate = (line) => new Response(new Blob([bytesOf(line)]).stream().pipeThrough(new DecompressionStream("deflate")));
  const load = (line, isBody) => {
    if (!inflated.has(line)) {
      inflated.set(line, inflate(line).json());
      if (isBody) {
        const bodies = [...inflated.keys()].filter((kept) => index.bodies.includes(kept));
        if (bodies.length > KEPT) inflated.delete(bodies[0]);
      }
    }
    return inflated.get(line);
  };
  // A block of texts is one text, a case after each NUL, with its id, question, answer, reason and place on a line each.
  const texts = new Map();
  const textsOf = async (number) => {
    const block = Math.floor(number / index.perTexts);
    if (!texts.has(block)) texts.set(block, inflate(index.texts[block]).text().then((text) => text.split("\0")));
    return (await texts.get(block))[number % index.perTexts].split("\n");
  };
  const name = (column, number) => index[column + "s"][index[column][number]];
  const keyOf = (number) => (name("file", number) ? name("file", number) + "::" : "") + index.id[number];
  const numberOf = (key) => {
    const ids = key.includes("::") ? [key.slice(key.indexOf("::") + 2), key] : [key];
    for (const id of ids)
      for (let number = index.id.indexOf(id); number >= 0; number = index.id.indexOf(id, number + 1)) if (keyOf(number) === key) return number;
    return -1;
  };
  const filterWord = (text) => (/^[^\s"\\]+$/.test(text) ? text : `"${text.replace(/["\\]/g, "\\$&")}"`);
  const address = (number) => "#/case/" + encodeURIComponent(keyOf(number));
  const metricNamed = (written) =>
    Object.hasOwn(index.scores, written) ? written : Object.keys(index.scores).find((metric) => metric.split("@")[0] === written);
  const isNumber = (field) => NUMBERS.includes(field) || Object.hasOwn(index.operations, field);
  const column = async (metric) => {
    if (NUMBERS.includes(metric)) return index[metric];
    return Object.hasOwn(index.operations, metric) ? index.operations[metric] : load(index.scores[metric]);
  };
  // All words to find, a long text for each block: one search through it takes a tenth of one through each of its cases.
  const allTexts = () => {
    haystack ||= Promise.all(index.texts.map(async (line, block) => ({ from: block * index.perTexts, text: (await inflate(line).text()).toLowerCase() })));
    return haystack;
  };
  const holding = async (word) => {
    const numbers = new Uint8Array(index.id.length);
    if (!word || word.includes("\0")) return numbers.fill(word ? 0 : 1);
    for (const { from, text } of await allTexts()) {
      let place = 0, end = text.indexOf("\0");
      for (let at = text.indexOf(word); at >= 0 && end >= 0; at = text.indexOf(word, end)) {
        for (; end >= 0 && end < at; end = text.indexOf("\0", end + 1)) place++;
        numbers[from + place] = 1;
        if (end < 0) break;
      }
    }
    return numbers;
  };

  // ── filter: the words of gates and of -k ────────────────────────────────────────────────────────────────────
  // White space and letters are those of comparison/case_filter.py, which reads the same language.
  const TOKEN = /(-?)(?:([\p{L}\p{Nl}\p{No}_][\p{L}\p{N}_.@\-]*?)(:|<=|>=|<|>|=))?("(?:[^"\\]|\\.)*"|[^\s\x1c-\x1f\x85"]+)/gsu;
  const NUMBER = /^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$/;
  const OUTCOMES = ["passed", "failed", "error", "skipped", "xfailed"], CHANGES = ["worse", "fixed", "unmeasured", "new", "same"];
  // The column of each word that is compared as a whole.
  const columns = () => ({ outcome: "outcome", changed: "change", ...Object.fromEntries(index.descriptive.map((name) => [name, name])), file: "file", doubt: "doubt", cause: "cause", flaky: "flaky", answer: "answer", conversation: "conversation", turn: "turn" });
  const COMPARE = { "<": (a, b) => a < b, ">": (a, b) => a > b, "<=": (a, b) => a <= b, ">=": (a, b) => a >= b, "=": (a, b) => a === b };
  const shown = (names) => names.filter(Boolean).slice(0, 8).join(", ");
  const always = () => ({ flaky: ["yes", "no"], answer: ["different", "same", "unknown"], unchecked: index.unchecked_known, cause: index.causes_known, outcome: OUTCOMES, changed: CHANGES, doubt: ["document", "last_heading", "folder", "spelling", "none"] });
  const choices = (kind, names, value) => (names.includes(value) ? [value] : value.split(",")).map((word) => {
    const code = names.indexOf(word);
    if (code < 0 && !always()[kind]?.includes(word)) throw new Error(`no ${kind} “${word}”; there are ${shown(names) || "none"}`);
    return code;
  });
  const condition = async (field, sign, value) => {
    if (!field) {
      const numbers = await holding(value.toLowerCase());
      return (number) => numbers[number] === 1;
    }
    if (sign === ":" && field === "changed" && !index.compared) throw new Error("the run was compared with none: nothing changed in it");
    if (sign === ":" && field === "answer" && !index.answered) throw new Error("the answers are compared with none here: leave answer: out");
    const wordColumns = columns();
    if (sign === ":" && Object.hasOwn(wordColumns, field)) {
      const codes = new Set(choices(field, index[wordColumns[field] + "s"], value)), values = index[wordColumns[field]];
      return (number) => codes.has(values[number]);
    }
    if (sign === ":" && (field === "tag" || field === "unchecked")) {
      const codes = choices(field, index[field + "s"], value);
      return (number) => index[field][number].some((code) => codes.includes(code));
    }
    if (sign === ":" && field === "layer") {
      const bits = choices("layer", index.layers, value).reduce((sum, code) => sum | (1 << code), 0);
      return (number) => (index.layer[number] & bits) !== 0;
    }
    if (sign === ":" && field === "id") return (number) => index.id[number].includes(value);
    if (sign === ":" && field === "fell") {
      const metric = Object.hasOwn(index.falls, value) ? value : Object.keys(index.falls).find((known) => known.split("@")[0] === value);
      if (!metric) throw new Error(`no case fell in “${value}”; cases fell in ${shown(Object.keys(index.falls)) || "no metric"}`);
      const fallen = new Set(await load(index.falls[metric]));
      return (number) => fallen.has(number);
    }
    const metric = isNumber(field) ? field : metricNamed(field);
    if (!metric) throw new Error(`“${field}” is nothing to filter by: ${Object.keys(wordColumns).join(", ")}, tag, unchecked, layer, id, fell, ${Object.keys(index.operations).join(", ")}, or a metric as in token_f1<0.5`);
    const limit = Number(value), compare = COMPARE[sign];
    if (!compare || !NUMBER.test(value)) throw new Error(`“${field}${sign}${value}” needs a number, as in ${field}<0.5`);
    const values = await column(metric);
    return (number) => (values[number] ?? null) !== null && compare(values[number], limit);
  };
  const conditions = async (query) => {
    const made = [];
    for (const [, minus, field, sign, written] of query.matchAll(TOKEN)) {
      const holds = await condition(field, sign, written.startsWith('"') ? written.slice(1, -1).replace(/\\(.)/gs, "$1") : written);
      made.push(minus ? (number) => !holds(number) : holds);
    }
    return made;
  };
  const sorted = async (chosen, by) => {
    if (!by) return chosen;
    const down = by.startsWith("-") ? -1 : 1, field = by.replace(/^-/, "");
    if (field === "id") return chosen.sort((a, b) => down * ((index.id[a] > index.id[b]) - (index.id[a] < index.id[b])) || a - b);
    const metric = isNumber(field) ? field : metricNamed(field);
    if (!metric) throw new Error(`“${field}” is nothing to sort by`);
    const values = await column(metric);
    return chosen.sort((a, b) => ((values[a] ?? null) === null) - ((values[b] ?? null) === null) || down * (values[a] - values[b]) || a - b);
  };

  let asked = 0;
  const apply = async (query, by) => {
    const turn = ++asked;
    try {
      const tests = await conditions(query);
      const chosen = [];
      next: for (let number = 0; number < index.id.length; number++) {
        for (const holds of tests) if (!holds(number)) continue next;
        chosen.push(number);
      }
      const result = await sorted(chosen, by);
      if (turn !== asked) return;
      order = result;
      $("filter-error").textContent = "";
    } catch (problem) {
      if (turn === asked) $("filter-error").textContent = problem.message;
      return;
    }
    position = -1;
    const [shown, all] = [order.length, index.id.length].map((number) => number.toLocaleString("en"));
    $("count").textContent = shown === all ? all : `${shown} of ${all}`;
    for (const chip of document.querySelectorAll(".chips button")) chip.setAttribute("aria-pressed", chip.dataset.q === query);
    list.scrollTop = 0;
    draw(true);
  };

  // ── list: only the rows in sight are in the document ────────────────────────────────────────────────────────
  let space, first = -1, last = -1, rowHeight = 34;
  const onScale = (change) => `${change > 0 ? "+" : ""}${change.toFixed(2)}`;
  const cell = (row, kind, text) => {
    const made = row.appendChild(element("span", kind, text));
    made.setAttribute("role", "cell");
    return made;
  };
  const rowOf = (place) => {
    const number = order[place], row = element("div", "row"), outcome = name("outcome", number), change = name("change", number);
    row.setAttribute("role", "row");
    row.setAttribute("aria-rowindex", place + 2);
    row.style.transform = `translateY(${place * rowHeight}px)`;
    row.dataset.place = place;
    const note = change === "worse" ? " new" : change === "fixed" ? " fixed" : "";
    cell(row, "outcome " + outcome, `${MARKS[outcome]} ${WORDS[outcome] || outcome}${note}`);
    const link = cell(row, "id", "").appendChild(element("a", "", index.id[number]));
    link.href = address(number);
    const conversation = name("conversation", number);
    if (conversation) {
      const turns = row.lastChild.appendChild(element("a", "talk-link", "turns"));
      turns.href = "#/cases?q=" + encodeURIComponent(`conversation:${filterWord(conversation)}`);
      turns.title = `all turns of ${conversation}`;
    }
    cell(row, "category", name("category", number));
    const question = cell(row, "question", ""), fallen = name("fallen", number);
    cell(row, "drop", fallen ? `${onScale(index.drop[number] * index.widths[fallen])} ${fallen.split("@")[0]}` : index.compared ? "" : index.level[number]?.toFixed(2) ?? "–");
    const answer = cell(row, "answer", "");
    textsOf(number).then((texts) => ([, question.textContent, answer.textContent] = texts));
    return row;
  };
  const draw = (isNew) => {
    const from = Math.max(0, Math.floor(list.scrollTop / rowHeight) - 8);
    const to = Math.min(order.length, Math.ceil((list.scrollTop + list.clientHeight) / rowHeight) + 8);
    if (!isNew && from === first && to === last) return;
    [first, last] = [from, to];
    const active = document.activeElement && space.contains(document.activeElement) ? position : -1;
    space.style.height = `${order.length * rowHeight}px`;
    space.replaceChildren(...Array.from({ length: to - from }, (_, offset) => rowOf(from + offset)));
    list.setAttribute("aria-rowcount", order.length + 1);
    if (active >= from && active < to) space.children[active - from].querySelector("a").focus({ preventScroll: true });
  };
  const move = (step) => {
    position = Math.min(Math.max(position + step, 0), order.length - 1);
    if (position < 0) return;
    const top = position * rowHeight, room = list.clientHeight - rowHeight;
    if (top < list.scrollTop) list.scrollTop = top;
    if (top + rowHeight > list.scrollTop + room) list.scrollTop = top - room + rowHeight;
    draw();
    space.children[position - first]?.querySelector("a").focus({ preventScroll: true });
    list.scrollIntoView({ block: "nearest" });
  };
  const makeList = () => {
    const head = element("div", "row head");
    head.setAttribute("role", "row");
    for (const [kind, title] of [["outcome", "outcome"], ["id", "id"], ["category", "category"], ["question", "question"], ["drop", index.compared ? "worst change" : "mean"], ["answer", "answer"]]) {
      const made = head.appendChild(element("span", kind, title));
      made.setAttribute("role", "columnheader");
    }
    space = element("div", "space");
    space.setAttribute("role", "rowgroup");
    for (const [attribute, value] of [["role", "table"], ["aria-label", "Cases"], ["tabindex", "0"]]) list.setAttribute(attribute, value);
    list.append(head, space);
    list.addEventListener("scroll", () => requestAnimationFrame(() => draw()), { passive: true });
    const measure = () => {
      rowHeight = parseFloat(getComputedStyle(list).getPropertyValue("--row")) || 34;
      draw(true);
    };
    addEventListener("resize", measure);
    rowHeight = parseFloat(getComputedStyle(list).getPropertyValue("--row")) || 34;
    const orders = [["", "worst first"], ["id", "id"], ["-latency_ms", "slowest first"], ...Object.keys(index.scores).map((metric) => [metric, metric + ", lowest first"])];
    for (const [value, title] of orders) $("sort").append(new Option(title, value));
  };

  // ── case ────────────────────────────────────────────────────────────────────────────────────────────────────
  let current = -1;
  const button = (what, key, text) => {
    const made = element("button", "", text);
    made.type = "button";
    made.dataset.do = what;
    made.append(" ", element("kbd", "", key));
    return made;
  };
  const bar = (number) => {
    const made = element("nav", "case-bar"), place = order.indexOf(number);
    made.setAttribute("aria-label", "Case");
    const home = made.appendChild(element("a", "", "← cases"));
    home.href = back;
    if (place >= 0) made.append(element("span", "faint", `${place + 1} of ${order.length}`), button("next", "n", "next"), button("previous", "p", "previous"));
    made.append(button("link", "y", "copy link"), button("rerun", "r", "copy command"), button("markdown", "m", "copy as Markdown"), button("draft", "s", "copy as draft case"));
    return made;
  };
  const open = async (key) => {
    const number = numberOf(key);
    if (report.hidden === false) scrolled = scrollY;
    current = number;
    const body = number >= 0 && number < index.bodied ? (await load(index.bodies[Math.floor(number / index.perBody)], true))[number % index.perBody] : "";
    if (current !== number) return;
    page.replaceChildren();
    if (number < 0) {
      page.append(bar(number), element("p", "note", `This run has no case “${key}”.`));
    } else if (!body) {
      const [, question, answer, why] = await textsOf(number);
      page.append(bar(number), element("h2", "", index.id[number]), ...[why, question, answer].map((text) => element("p", "", text)));
      page.append(element("p", "note", `The page of this case is not in this file (rageval report ${index.run} --full puts all in). It is shown by:`), element("code", "", `rageval explain ${index.run} '${key}'`));
    } else {
      page.innerHTML = body; // escaped by the template; the policy forbids handlers and scripts
      page.prepend(bar(number));
      for (const hidden of page.querySelectorAll(".scripted")) hidden.hidden = false;
      showTrial();
    }
    report.hidden = true;
    page.hidden = false;
    scrollTo(0, 0);
    page.focus({ preventScroll: true });
    document.title = `${index.id[number] || key} · ${index.run}`;
  };
  const close = () => {
    if (page.hidden) return;
    page.hidden = true;
    page.replaceChildren();
    report.hidden = false;
    document.title = title;
    draw(true);
    scrollTo(0, scrolled);
  };
  const title = document.title;
  const step = (by) => {
    const place = order.indexOf(current) + by;
    if (place >= 0 && place < order.length) location.hash = address(order[place]);
  };

  // ── address ─────────────────────────────────────────────────────────────────────────────────────────────────
  const route = async () => {
    const hash = location.hash;
    const match = /^#\/case\/(.+?)(\/compare)?$/.exec(hash); // links of older reports end in /compare
    if (match) return open(decoded(match[1]));
    close();
    if (hash.startsWith("#/cases")) {
      const asks = new URLSearchParams(hash.split("?")[1] || "");
      filter.value = asks.get("q") || "";
      $("sort").value = asks.get("sort") || "";
      await apply(filter.value, $("sort").value);
      back = hash;
      if (!scrolled) $("cases").scrollIntoView();
      scrolled = 0;
    } else if (hash.length > 1) {
      const target = $(decoded(hash.slice(1)));
      const folded = target && target.closest("details");
      if (folded) folded.open = true;
      if (target) target.scrollIntoView();
    }
  };
  const filtered = () => {
    const asks = new URLSearchParams();
    if (filter.value) asks.set("q", filter.value);
    if ($("sort").value) asks.set("sort", $("sort").value);
    back = "#/cases" + (String(asks) ? "?" + asks : "");
    history.replaceState(null, "", back);
    try {
      localStorage.setItem("rageval:" + index.project, filter.value);
    } catch {
      /* a browser that keeps nothing for files */
    }
    return apply(filter.value, $("sort").value);
  };

  // ── keys and buttons ────────────────────────────────────────────────────────────────────────────────────────
  const ACTIONS = {
    keys: () => $("keys").showModal(),
    next: () => step(1),
    previous: () => step(-1),
    link: () => copy(location.href, "link"),
    rerun: () => copy(page.querySelector("[data-md=rerun]")?.textContent || `pytest '${keyOf(current)}'`, "command"),
    markdown: () => copy(markdown(), "Markdown"),
    draft: () => {
      const line = page.querySelector("[data-draft]");
      if (line) copy(line.textContent + "\n", "draft case; the command under the case stores it");
      else say("this file holds no text of the case to draft from");
    },
    left: () => stepTrial(-1) || step(-1),
    right: () => stepTrial(1) || step(1),
  };
  const CASE_KEYS = { n: "next", p: "previous", y: "link", r: "rerun", m: "markdown", s: "draft", ArrowRight: "right", ArrowLeft: "left" };
  const listKey = (key) => {
    if (key === "j" || key === "ArrowDown") return move(1), true;
    if (key === "k" || key === "ArrowUp") return move(-1), true;
    if (key === "Enter" && position >= 0 && document.activeElement === list) return (location.hash = address(order[position])), true;
    if (key === "/") return filter.focus(), $("cases").scrollIntoView(), true;
    return false;
  };
  const caseKey = (key) => {
    if (key === "Escape") return (location.hash = back), true;
    if (!(key in CASE_KEYS)) return false;
    ACTIONS[CASE_KEYS[key]]();
    return true;
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || $("keys").open) return;
    if (event.target.matches("input, select, textarea")) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    const isArrow = event.key.startsWith("Arrow");
    if (isArrow && page.hidden && !list.contains(event.target)) return; // the page scrolls
    if (event.key === "?") $("keys").showModal();
    else if (page.hidden ? listKey(event.key) : caseKey(event.key)) event.preventDefault();
  });
  document.addEventListener("click", (event) => {
    const pressed = event.target.closest("button");
    if (!pressed) return;
    if (pressed.dataset.do in ACTIONS) ACTIONS[pressed.dataset.do]();
    else if (pressed.dataset.trial !== undefined) pick(Number(pressed.dataset.trial));
    else if (pressed.dataset.q !== undefined) (filter.value = pressed.dataset.q), filtered();
  });

  // ── folded tables: their rows are in the document only while they are open ────────────────────────────────────
  const folded = new Map();
  const fold = (details) => {
    const inside = document.createDocumentFragment();
    inside.append(...[...details.children].filter((child) => child.tagName !== "SUMMARY"));
    folded.set(details, inside);
    details.addEventListener("toggle", () => details.open && details.append(inside));
  };
  const foldTables = () => {
    for (const details of document.querySelectorAll(".plot details, #config details, .causes details, #metrics > details"))
      if (!details.open) fold(details);
  };

  // ── paper: the plain rows come back, and all failing cases with them ────────────────────────────────────────
  const reasons = new Map();
  const failingNumbers = () => index.id.map((_, number) => number).filter((number) => ["failed", "error", "xfailed"].includes(name("outcome", number)));
  const readReasons = async () => {
    for (const number of failingNumbers().slice(plain.querySelectorAll("li").length))
      reasons.set(number, await textsOf(number));
  };
  const addRest = () => {
    for (const [number, [, question, answer, why]] of reasons) {
      const row = plain.querySelector("ol").appendChild(element("li", "", `${MARKS[name("outcome", number)]} ${index.id[number]}`));
      row.append(element("p", "reason", why), element("p", "", "Q " + question), element("p", "", "A " + answer));
    }
    reasons.clear();
  };
  addEventListener("beforeprint", () => {
    for (const folded of document.querySelectorAll("#case details.fold, #metrics details")) folded.open = true;
    for (const [details, inside] of folded) details.append(inside);
    addRest();
    $("cases").append(plain);
  });
  addEventListener("afterprint", () => plain.remove());

  // ── start ───────────────────────────────────────────────────────────────────────────────────────────────────
  const start = async () => {
    index = await load(0);
    for (const hidden of document.querySelectorAll(".scripted")) hidden.hidden = false;
    list.hidden = false;
    plain.remove();
    foldTables();
    makeList();
    filter.addEventListener("input", filtered);
    $("sort").addEventListener("change", filtered);
    addEventListener("hashchange", route);
    if (!location.hash.startsWith("#/cases")) {
      try {
        filter.value = localStorage.getItem("rageval:" + index.project) || "";
      } catch {
        /* as above */
      }
    }
    await apply(filter.value, "");
    if ($("filter-error").textContent) (filter.value = ""), await apply("", "");
    await route();
    if (index.id.length) await textsOf(0);
    document.documentElement.dataset.ready = "yes";
    setTimeout(allTexts); // before somebody looks for words
    readReasons();
  };
  if (blocks.length) start();
})();
