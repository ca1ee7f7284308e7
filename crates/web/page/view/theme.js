// Light, dark, or as the system has it.

/** @type {('system'|'light'|'dark')[]} */
const ORDER = ['system', 'light', 'dark'];

export function theme() {
  const chosen = document.documentElement.dataset.theme;
  return chosen === 'light' || chosen === 'dark' ? chosen : 'system';
}

/** @param {'system'|'light'|'dark'} name */
export function setTheme(name) {
  if (name === 'system') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = name;
  // Read by boot.js, which has no JSON in mind.
  try {
    if (name === 'system') localStorage.removeItem('pinion-theme');
    else localStorage.setItem('pinion-theme', name);
  } catch { /* not kept */ }
  tint();
}

export function nextTheme() {
  setTheme(ORDER[(ORDER.indexOf(theme()) + 1) % ORDER.length]);
}

/** The colour of the browser's own bars. */
export function tint() {
  const colour = getComputedStyle(document.documentElement).getPropertyValue('--page').trim();
  for (const meta of document.querySelectorAll('meta[name=theme-color]')) meta.setAttribute('content', colour);
}
