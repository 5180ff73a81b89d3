/* What every page of a case does, in a report and in the web app: copying, the case as Markdown, the answers of its trials, what an
   address names. */
"use strict";
const caseParts = (() => {
  const say = (text) => {
    const said = document.getElementById("said");
    said.textContent = text;
    setTimeout(() => (said.textContent = ""), 2500);
  };
  const copy = async (text, what) => {
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      const area = document.body.appendChild(document.createElement("textarea"));
      area.value = text;
      area.select();
      document.execCommand("copy");
      area.remove();
    }
    say(`copied: ${what}`);
  };
  const markdown = () => {
    const parts = [...document.querySelectorAll("#case [data-md]")].map((part) => {
      const rows = part.matches("table") ? [...part.rows].map((row) => [...row.cells].map((each) => each.textContent.trim().replace(/\s+/g, " ")).join(" | ")) : null;
      const text = rows ? rows.join("\n") : part.textContent.trim(), fence = "`".repeat(Math.max(3, ...[...text.matchAll(/`+/g)].map((run) => run[0].length + 1)));
      return `**${part.dataset.md}**\n\n${fence}text\n${text}\n${fence}`;
    });
    return parts.join("\n\n") + "\n";
  };
  // ── answers of several trials: one is shown, the arrows lead to the others ─────────────────────────────────────
  const choices = () => [...document.querySelectorAll("#case [data-trial]")];
  const picked = () => choices().findIndex((choice) => choice.getAttribute("aria-pressed") === "true");
  const pick = (number) => {
    document.querySelectorAll("#case .trials").forEach((trials) => trials.classList.add("picked"));
    document.querySelectorAll("#case .trials > ol > li").forEach((answer, place) => (answer.hidden = place !== number));
    for (const choice of choices()) choice.setAttribute("aria-pressed", Number(choice.dataset.trial) === number);
  };
  const showTrial = () => choices().length && pick(Math.max(picked(), 0));
  const stepTrial = (by) => {
    const last = choices().length - 1;
    if (last < 0) return false;
    pick(Math.min(Math.max(picked() + by, 0), last));
    return true;
  };
  // ── address ─────────────────────────────────────────────────────────────────────────────────────────────────
  const decoded = (text) => {
    try {
      return decodeURIComponent(text);
    } catch {
      return text; // typed, or cut: it names nothing, and breaks nothing
    }
  };
  return { say, copy, markdown, pick, showTrial, stepTrial, decoded };
})();
