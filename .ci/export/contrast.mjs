// Finds text that is hard to read: contrast below WCAG AA. Runs in the page, so it uses nothing from outside. Terminal colours are
// left out: the program that printed them chose them.

/** What is poor: element, ratio, text. */
export function poorContrast() {
  const rgba = (text) => { const n = text.match(/[\d.]+/g).map(Number); return text.startsWith('color(srgb') ? [n[0] * 255, n[1] * 255, n[2] * 255, n[3] ?? 1] : [n[0], n[1], n[2], n[3] ?? 1]; };
  const over = (top, under) => [0, 1, 2].map((i) => top[i] * top[3] + under[i] * (1 - top[3])).concat(1);
  const light = (c) => { const [r, g, b] = c.map((v) => { v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; }); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const poor = new Map();
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const node = texts.currentNode.parentElement;
    if (!texts.currentNode.data.trim() || !node.checkVisibility({ opacityProperty: true, visibilityProperty: true }) || node.closest('[class*="a-f"], [class*="a-b"], pre [style], .skip')) continue;
    const chain = [];
    for (let at = node; at; at = at.parentElement) chain.unshift(getComputedStyle(at));
    let under = [255, 255, 255, 1];
    for (const style of chain) under = over(rgba(style.backgroundColor), under);
    const fade = chain.reduce((all, style) => all * Number(style.opacity), 1);
    const mine = getComputedStyle(node);
    const top = over([...rgba(mine.color).slice(0, 3), rgba(mine.color)[3] * fade], under);
    const [a, b] = [light(top), light(under)].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    const large = parseFloat(mine.fontSize) >= 24 || (parseFloat(mine.fontSize) >= 18.6 && Number(mine.fontWeight) >= 700);
    if (ratio < (large ? 3 : 4.5)) { const key = `${node.tagName}.${node.className} in .${node.parentElement.className}`; if (!poor.has(key)) poor.set(key, `${ratio.toFixed(2)} ${texts.currentNode.data.trim().slice(0,20)}`); }
  }
  return [...poor].map(([key, value]) => `${key} ${value}`);
}
