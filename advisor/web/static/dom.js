// Elements are made of text alone: whatever came from a machine is never read as HTML.
export function h(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value == null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name in element && name !== "list") element[name] = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter(child => child != null));
  return element;
}
const SVG = "http://www.w3.org/2000/svg";
export function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}
export function key(state, label) {
  const box = svg("svg", { class: "key", viewBox: "0 0 16 12", preserveAspectRatio: "none" },
    svg("rect", { class: `s-${state}`, width: 16, height: 12 }));
  if (label) {
    box.setAttribute("role", "img");
    box.setAttribute("aria-label", label);
    box.prepend(svg("title", {}, label));
  } else box.setAttribute("aria-hidden", "true");
  return box;
}
export function text(element, value) {
  if (element.textContent !== value) element.textContent = value;
}
// Gives `parent` the children that `items` ask for, keeping those that are there already.
export function keep(parent, items, keyOf, make, update) {
  const there = (parent.kept ??= new Map());
  const wanted = new Set();
  let place = parent.firstElementChild;
  for (const item of items) {
    const name = keyOf(item);
    wanted.add(name);
    let view = there.get(name);
    if (!view) there.set(name, (view = make(item)));
    if (view.element !== place) parent.insertBefore(view.element, place);
    else place = place.nextElementSibling;
    update(view, item);
  }
  for (const [name, view] of there)
    if (!wanted.has(name)) {
      view.element.remove();
      there.delete(name);
    }
}
