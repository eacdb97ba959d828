// What a screen reader, a keyboard and weak eyes need, as far as the document itself can tell. Returns complaints.
() => {
  const complaints = [];
  const say = (text, element) => complaints.push(`${text}: ${element.outerHTML.slice(0, 140)}`);
  const all = (selector) => [...document.querySelectorAll(selector)];
  const shown = (element) => element.checkVisibility({ checkVisibilityCSS: true });
  const name = (element) =>
    (element.getAttribute("aria-label") ?? document.getElementById(element.getAttribute("aria-labelledby") ?? "")?.textContent
      ?? element.labels?.[0]?.textContent ?? element.textContent ?? "").trim();

  if (!document.documentElement.lang) complaints.push("no language");
  if (!document.title) complaints.push("no title");
  if (all("main").length !== 1) complaints.push("not exactly one main");
  if (all("h1").filter(shown).length !== 1) complaints.push("not exactly one h1");

  let level = 0;
  for (const heading of all("h1, h2, h3, h4, h5, h6").filter(shown)) {
    const next = Number(heading.tagName[1]);
    if (next > level + 1) say(`h${next} after h${level}`, heading);
    level = next;
  }

  for (const element of all("a[href], button, input:not([type=hidden]), select, textarea").filter(shown)) {
    if (!name(element)) say("no name", element);
  }
  for (const image of all("img")) if (!image.hasAttribute("alt")) say("no alt", image);
  for (const picture of all("[role=img], nav, [role=region], [role=search], [role=group], aside")) {
    if (!picture.getAttribute("aria-label") && !picture.getAttribute("aria-labelledby")) say("no label", picture);
  }
  for (const table of all("table")) {
    for (const head of table.querySelectorAll("th")) if (!head.scope) say("no scope", head);
  }
  for (const pointing of all("[aria-labelledby], [aria-describedby], label[for]")) {
    const ids = ["aria-labelledby", "aria-describedby", "for"].flatMap((key) => (pointing.getAttribute(key) ?? "").split(/\s+/));
    for (const id of ids.filter(Boolean)) if (!document.getElementById(id)) say(`no element #${id}`, pointing);
  }
  const ids = all("[id]").map((element) => element.id);
  for (const id of new Set(ids.filter((one, index) => ids.indexOf(one) !== index))) complaints.push(`two elements #${id}`);
  for (const element of all("[tabindex]")) if (element.tabIndex > 0) say("positive tabindex", element);

  // Contrast of text on its ground (WCAG 2.2, 1.4.3): 4.5 to 1, of large text 3 to 1.
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const rgba = (colour) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const light = (colour) => {
    const [r, g, b] = colour.map((part) => (part /= 255) <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const style = getComputedStyle(at);
      if (style.backgroundImage !== "none") return null; // a pattern: nothing to compute with
      const colour = rgba(style.backgroundColor);
      if (colour[3] === 255) return colour;
    }
    return [255, 255, 255, 255];
  };
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const seen = new Set();
  while (texts.nextNode()) {
    const element = texts.currentNode.parentElement;
    if (!texts.currentNode.data.trim() || seen.has(element) || !shown(element) || element.closest(".sr, .skip, noscript")) continue;
    seen.add(element);
    const style = getComputedStyle(element);
    const under = ground(element);
    if (!under) continue;
    const [one, other] = [light(rgba(style.color).slice(0, 3)), light(under.slice(0, 3))];
    const ratio = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
    const size = parseFloat(style.fontSize);
    const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    if (ratio < (large ? 3 : 4.5)) say(`contrast ${ratio.toFixed(2)}`, element);
  }

  if (document.documentElement.scrollWidth > innerWidth) complaints.push("wider than the window");
  return complaints;
}
