/* Keys, copying and folded definitions of pages that are read without scripts, too: a key presses what stands there. */
"use strict";
(() => {
  const $ = (id) => document.getElementById(id);
  const { copy, markdown, pick, showTrial, stepTrial, decoded } = caseParts;

  const ACTIONS = {
    keys: () => $("keys").showModal(),
    draft: () => {
      const line = document.querySelector("#case [data-draft]");
      if (line) copy(line.textContent + "\n", "draft case");
    },
    link: () => copy(location.href, "link"),
    rerun: () => copy(document.querySelector("[data-md=rerun]").textContent, "command"),
    markdown: () => copy(markdown(), "Markdown"),
  };
  const move = (step) => {
    const links = [...document.querySelectorAll("[data-row] a")], at = links.indexOf(document.activeElement);
    const link = links[at < 0 ? (step > 0 ? 0 : links.length - 1) : Math.min(Math.max(at + step, 0), links.length - 1)];
    if (link) link.focus();
    return Boolean(link);
  };
  const press = (key) => {
    const target = [...document.querySelectorAll("[data-key]")].find((each) => each.dataset.key === key && !each.hidden);
    if (!target) return false;
    if (target.matches("input")) target.focus();
    else target.click();
    return true;
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    if (event.target.matches("input, select, textarea")) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    const isInList = Boolean(event.target.closest("[data-row]")), isArrow = event.key === "ArrowDown" || event.key === "ArrowUp";
    const isMove = event.key === "j" || event.key === "k" || (isArrow && isInList);
    const sideways = { ArrowLeft: [-1, "p"], ArrowRight: [1, "n"] }[event.key];
    if (event.key === "?") $("keys").showModal();
    else if (sideways) (stepTrial(sideways[0]) || press(sideways[1])) && event.preventDefault();
    else if (isMove ? move(event.key === "j" || event.key === "ArrowDown" ? 1 : -1) : press(event.key)) event.preventDefault();
  });
  document.addEventListener("click", (event) => {
    const pressed = event.target.closest("[data-do]");
    if (pressed && pressed.dataset.do in ACTIONS) ACTIONS[pressed.dataset.do]();
    const choice = event.target.closest("[data-trial]");
    if (choice) pick(Number(choice.dataset.trial));
  });
  const unfold = () => {
    const target = location.hash.length > 1 && $(decoded(location.hash.slice(1)));
    const folded = target && target.closest("details");
    if (folded && !folded.open) (folded.open = true), target.scrollIntoView();
  };
  addEventListener("hashchange", unfold);
  for (const hidden of document.querySelectorAll(".scripted")) hidden.hidden = false;
  showTrial();
  unfold();
})();
