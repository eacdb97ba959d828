// Help with two kinds of fields, which work as text without it. What listens is the document: panels are replaced while they
// are open.
(() => {
  // Names of a kind (`data-names`), offered while somebody types; of Compare, of what is chosen beside them. `data-several`:
  // of names with commas, the last. `data-group`: only those of one group.
  const PAUSE_MS = 150; // after the last key
  const names = document.createElement("datalist");
  names.id = "names-found";
  document.body.append(names);
  let later = 0;
  let asked = null; // the request that is under way

  const offer = async (field) => {
    asked?.abort();
    asked = new AbortController();
    const written = field.value;
    const before = field.matches("[data-several]") ? /^(.*,\s*)?/.exec(written)[0] : "";
    const q = written.slice(before.length).trim();
    let found = [];
    if (q) {
      const kind = field.dataset.names || field.form.elements.what.value;
      const address = `${document.getElementById("find").dataset.url}?${new URLSearchParams({ q, group: field.dataset.group || "" })}`;
      try {
        const answer = await fetch(address, { headers: { "Kcoord-Search": kind }, redirect: "manual", signal: asked.signal });
        if (answer.ok) found = await answer.json();
      } catch {
        if (field.value !== written) return; // other letters were written meanwhile
      }
    }
    names.replaceChildren(...found.map((name) => new Option(name, before + name)));
  };
  document.addEventListener("input", (event) => {
    const field = event.target;
    if (!field.matches("[data-names]") || event.inputType === "insertReplacementText") return; // one of them was chosen
    field.setAttribute("list", names.id);
    clearTimeout(later);
    later = setTimeout(offer, PAUSE_MS, field);
  });

  // An instant: the button beside it opens the browser's own calendar, whose choice is written as the field wants it.
  const calendar = document.createElement("input");
  Object.assign(calendar, { type: "datetime-local", tabIndex: -1, className: "calendar-of", ariaLabel: "Date and time" });
  document.addEventListener("click", (event) => {
    const button = event.target.closest(".calendar");
    if (!button) return;
    const field = button.parentElement.querySelector(".instant");
    button.after(calendar);
    calendar.value = field.value.slice(0, 16).replace(" ", "T");
    calendar.onchange = () => {
      field.value = calendar.value.replace("T", " ");
      field.dispatchEvent(new Event("input", { bubbles: true }));
    };
    calendar.showPicker();
  });
})();
