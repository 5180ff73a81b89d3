// Narrows a table to the rows that hold the words of a search field.
(() => {
  "use strict";
  for (const scripted of document.querySelectorAll(".scripted")) scripted.hidden = false;
  document.addEventListener("input", (event) => {
    const table = document.getElementById(event.target.dataset.searchIn || "");
    if (!table) return;
    const words = event.target.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const row of table.querySelectorAll("[data-search]")) {
      row.hidden = !words.every((word) => row.textContent.toLowerCase().includes(word));
    }
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && event.target.dataset.searchIn) event.preventDefault();
  });
})();
