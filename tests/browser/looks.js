// Looked at are the lines of each text node, as they are painted: one rectangle a line. In SVG, a text node is one line.
const MORE_THAN = 0.3;  // of a line's height: lines of a paragraph lie a little over each other where they are set close
const PIXEL = 1.5;      // what a rounded layout may be off by

function parts(selector) {
  const found = [...document.querySelectorAll(selector)];
  if (!found.length) throw new Error(`nothing on the page matches ${selector}`);
  return found;
}

// Whether an element, or one around it, is kept for screen readers alone: of no size, or clipped to nothing.
const withdrawn = new Map();
function isWithdrawn(element) {
  if (!element) return false;
  if (!withdrawn.has(element)) {
    const style = getComputedStyle(element), box = element.getBoundingClientRect();
    const clipped = style.clipPath === 'inset(50%)' || style.clip === 'rect(0px, 0px, 0px, 0px)';
    const tiny = style.overflow !== 'visible' && style.position === 'absolute' && box.width <= 1 && box.height <= 1;
    withdrawn.set(element, clipped || tiny || isWithdrawn(element.parentElement));
  }
  return withdrawn.get(element);
}

function isHidden(element) {
  const how = {opacityProperty: true, visibilityProperty: true, contentVisibilityAuto: true};
  return !element.checkVisibility(how) || isWithdrawn(element);
}

function linesOf(root) {
  const lines = [], walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode, element = node.parentElement, text = node.data.trim();
    if (!text || ['STYLE', 'SCRIPT', 'TITLE', 'DESC', 'TEMPLATE', 'OPTION'].includes(element.tagName.toUpperCase())) continue;
    if (isHidden(element)) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    for (const box of range.getClientRects())
      if (box.width > 0 && box.height > 0) lines.push({node, element, text: name(text), box, seen: box});
  }
  return lines;
}

function name(text) {
  const line = text.replace(/\s+/g, ' ');
  return JSON.stringify(line.length > 50 ? `${line.slice(0, 50)}…` : line);
}

function crossing(a, b) {
  const left = Math.max(a.left, b.left), right = Math.min(a.right, b.right);
  const top = Math.max(a.top, b.top), bottom = Math.min(a.bottom, b.bottom);
  return {left, right, top, bottom, width: right - left, height: bottom - top};
}

// Say how a line is cut off by what is around it, and leave in `seen` what can be seen of it.
function cut(line) {
  for (let at = line.element; at && at !== document.body; at = at.parentElement) {  // body's overflow is the window's
    const style = getComputedStyle(at), isSvg = at instanceof SVGElement;
    if (isSvg ? at.tagName !== 'svg' : ['inline', 'contents'].includes(style.display)) continue;
    const outer = at.getBoundingClientRect(), across = style.overflowX, along = style.overflowY;
    const inner = isSvg ? outer : {
      left: outer.left + at.clientLeft, top: outer.top + at.clientTop,
      right: outer.left + at.clientLeft + at.clientWidth, bottom: outer.top + at.clientTop + at.clientHeight,
    };
    const {seen} = line;
    const wide = across !== 'visible' && (seen.left < inner.left - PIXEL || seen.right > inner.right + PIXEL);
    const high = along !== 'visible' && (seen.top < inner.top - PIXEL - 1 || seen.bottom > inner.bottom + PIXEL + 1);
    const isCut = (wide && ['hidden', 'clip'].includes(across)) || (high && ['hidden', 'clip'].includes(along));
    if (isCut && !isShortenedFairly(line, at, style, wide, high)) return at;
    if (across !== 'visible' || along !== 'visible') {
      const bounds = {
        left: across === 'visible' ? -Infinity : inner.left, right: across === 'visible' ? Infinity : inner.right,
        top: along === 'visible' ? -Infinity : inner.top, bottom: along === 'visible' ? Infinity : inner.bottom,
      };
      line.seen = crossing(seen, bounds);
      if (line.seen.width <= 0 || line.seen.height <= 0) return null;
    }
  }
  return null;
}

function isShortenedFairly(line, at, style, wide, high) {
  if (high || style.textOverflow !== 'ellipsis' || line.element.closest('button')) return false;
  const title = line.element.closest('[title]')?.title ?? '';
  return title.includes(line.node.data.trim().replace(/…$/, ''));
}

function described(element) {
  const kind = [...element.classList].slice(0, 3).map(word => `.${word}`).join('');
  return `${element.tagName.toLowerCase()}${kind}`;
}

function troubles(roots) {
  const found = [], lines = [];
  for (const line of roots.flatMap(linesOf)) {
    const by = cut(line);
    if (by) found.push(`${line.text} is cut off by ${described(by)}`);
    else if (line.seen.width > 0 && line.seen.height > 0) lines.push(line);
  }
  lines.sort((a, b) => a.seen.top - b.seen.top);
  lines.forEach((a, index) => {
    for (let other = index + 1; other < lines.length && lines[other].seen.top < a.seen.bottom; other++) {
      const b = lines[other], both = crossing(a.seen, b.seen);
      if (a.node === b.node || both.width <= PIXEL) continue;
      if (both.height > MORE_THAN * Math.min(a.seen.bottom - a.seen.top, b.seen.bottom - b.seen.top))
        found.push(`${a.text} overlaps ${b.text}`);
    }
  });
  return [...new Set(found)];
}

function color(text) {
  const canvas = color.canvas ??= new OffscreenCanvas(1, 1).getContext('2d', {willReadFrequently: true});
  canvas.clearRect(0, 0, 1, 1);
  canvas.fillStyle = text;
  canvas.fillRect(0, 0, 1, 1);
  const [red, green, blue, alpha] = canvas.getImageData(0, 0, 1, 1).data;
  return {rgb: [red, green, blue], alpha: alpha / 255};
}

function over(front, back) {
  return front.rgb.map((part, index) => front.alpha * part + (1 - front.alpha) * back[index]);
}

function behind(element) {
  const layers = [];
  for (let at = element; at; at = at.parentElement) {
    layers.push(color(getComputedStyle(at).backgroundColor));
    if (layers.at(-1).alpha === 1) break;
  }
  return layers.reverse().reduce((back, layer) => over(layer, back), [255, 255, 255]);
}

function luminance(rgb) {
  const [red, green, blue] = rgb.map(part => {
    const share = part / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

function contrast(element) {
  const style = getComputedStyle(element), back = behind(element);
  const front = color(element instanceof SVGElement ? style.fill : style.color);
  for (let at = element; at; at = at.parentElement) front.alpha *= Number(getComputedStyle(at).opacity);
  const [low, high] = [luminance(back), luminance(over(front, back))].sort((a, b) => a - b);
  return (high + 0.05) / (low + 0.05);
}

function faint(roots, least) {
  const lines = roots.flatMap(linesOf).filter(({element}) => !element.closest('[disabled], [aria-disabled=true]'));
  return [...new Set(lines.flatMap(({element, text}) => {
    const ratio = contrast(element);
    return ratio < least ? [`${text} has a contrast of ${ratio.toFixed(1)}, below ${least}`] : [];
  }))];
}
