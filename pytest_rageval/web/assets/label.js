// Keys of the label page. Each presses a button or follows a link that is on the page: without this script they are used
// by hand. `v` chooses lines of the text: arrows move, Shift and an arrow moves the beginning, Enter takes them.
(() => {
  "use strict";
  const one = selector => document.querySelector(selector);
  let lines = null; // first and last line, while a snippet is chosen
  let busy = false; // is a request under way? Keys that are pressed meanwhile are meant for the page that comes of it
  const waiting = [];

  const named = event => event.key === " " ? "Space" : (event.shiftKey && event.key.startsWith("Arrow") ? "shift+" : "") + event.key;

  function showLines() {
    for (const line of document.querySelectorAll("[data-line]")) {
      const number = Number(line.dataset.line);
      line.classList.toggle("meant", lines !== null && number >= Math.min(...lines) && number <= Math.max(...lines));
    }
    if (lines) one(`[data-line="${lines[1]}"]`)?.scrollIntoView({ block: "nearest" });
  }

  function chooseLines(key) {
    const count = document.querySelectorAll("[data-line]").length;
    const move = (at, by) => { lines[at] = Math.min(count, Math.max(1, lines[at] + by)); };
    if (key === "ArrowUp") move(1, -1);
    else if (key === "ArrowDown") move(1, 1);
    else if (key === "shift+ArrowUp") move(0, -1);
    else if (key === "shift+ArrowDown" || key === "v") move(0, 1);
    else if (key === "Enter") {
      one("[name=first]").value = Math.min(...lines);
      one("[name=last]").value = Math.max(...lines);
      lines = null;
      one("[name=do][value=snippet]").click();
    } else if (key === "Escape") lines = null;
    showLines();
  }

  function type(key, event) {
    const field = event.target;
    if (key === "Escape") field.blur();
    else if (key === "Enter" && field.name === "words") {
      event.preventDefault();
      one(`[name=do][value=${field.dataset.for || "find"}]`).click();
      field.blur();
    }
  }

  // What a mouse has pressed does not keep the focus: Enter goes on to the next case.
  document.addEventListener("click", event => { if (event.detail && event.target.closest("#label button")) document.activeElement?.blur(); });

  document.addEventListener("keydown", event => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || !one("#label")) return;
    const key = named(event);
    if (event.target.matches("input, textarea, select")) return type(key, event);
    if (isOfFocus(key, event.target)) return;
    if (!busy && !lines && !means(key)) return;
    event.preventDefault();
    if (busy) waiting.push(key);
    else obey(key);
  });

  // Does the key press what has the focus? In the list of chunks it does not: its one link is the chunk pointed at.
  const isOfFocus = (key, element) => (key === "Enter" && element.matches("a, button, summary") && !element.closest(".chunks"))
    || (key === "Space" && element.matches("button, summary"));

  // Tab leads to the chunk that is pointed at, and arrows lead from there to the others, with the focus where it is seen.
  function rove() {
    const current = one(".chunks [aria-current] a");
    for (const link of document.querySelectorAll(".chunks a")) link.tabIndex = link === current ? 0 : -1;
    for (const box of document.querySelectorAll(".chunks button")) box.tabIndex = -1; // Space ticks the chunk pointed at
    if (document.activeElement?.closest(".chunks") && document.activeElement !== current) current?.focus();
  }

  const pressed = key => one(`[data-key="${CSS.escape(key)}"]`);
  const means = key => pressed(key) || "vw/".includes(key);

  function obey(key) {
    if (lines) return chooseLines(key);
    if (key === "v") {
      if (one("[data-line]")) lines = [1, 1];
      return showLines();
    }
    if (key === "w" || key === "/") {
      const field = one("[name=words]");
      field.dataset.for = key === "/" ? "ask" : "find";
      return field.focus();
    }
    pressed(key)?.click();
  }

  document.addEventListener("htmx:finally:swap", rove);
  rove();
  document.addEventListener("htmx:before:request", () => { busy = true; });
  document.addEventListener("htmx:finally:request", () => {
    busy = false;
    for (const name of ["first", "last"]) if (one(`[name=${name}]`)) one(`[name=${name}]`).value = "";
    while (!busy && waiting.length) obey(waiting.shift());
  });
})();
