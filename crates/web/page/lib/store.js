// What this browser remembers: drafts, what was sent, small choices. Storage may be off or full; then it is forgotten.

const PREFIX = 'pinion-';

export function recall(name, otherwise = null) {
  try {
    const text = localStorage.getItem(PREFIX + name);
    return text === null ? otherwise : JSON.parse(text);
  } catch {
    return otherwise;
  }
}

export function keep(name, value) {
  try {
    if (value === null || value === undefined || value === '') localStorage.removeItem(PREFIX + name);
    else localStorage.setItem(PREFIX + name, JSON.stringify(value));
  } catch { /* forgotten */ }
}
