// Numbers, times and paths for people. Pure: no document, no clock but the one that is passed in.

const MINUTE = 60000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** 950, 12k, 1.3M */
export function tokens(count) {
  if (count === null || count === undefined) return '–';
  if (count < 1000) return String(Math.round(count));
  if (count < 10000) return `${(count / 1000).toFixed(1)}k`;
  if (count < 1e6) return `${Math.round(count / 1000)}k`;
  return `${(count / 1e6).toFixed(count < 1e7 ? 1 : 0)}M`;
}

/** US dollars, with as many digits as say something. */
export function cost(dollars) {
  if (!dollars) return '$0';
  if (dollars < 0.01) return '<$0.01';
  return `$${dollars.toFixed(dollars < 100 ? 2 : 0)}`;
}

/** A length of time: 0.4 s, 12 s, 3 min 5 s. */
export function duration(ms) {
  if (ms < 950) return `${(ms / 1000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1000);
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return seconds % 60 ? `${minutes} min ${seconds % 60} s` : `${minutes} min`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** How long ago: now, 5 min, 3 h, 2 d, then a date. */
export function age(then, now) {
  const time = typeof then === 'number' ? then : Date.parse(then);
  if (Number.isNaN(time)) return '';
  const gone = now - time;
  if (gone < MINUTE) return 'now';
  if (gone < HOUR) return `${Math.floor(gone / MINUTE)} min`;
  if (gone < DAY) return `${Math.floor(gone / HOUR)} h`;
  if (gone < 7 * DAY) return `${Math.floor(gone / DAY)} d`;
  return new Date(time).toLocaleDateString(undefined, { month: 'short', day: 'numeric' });
}

/** A path with the home directory as `~`. The home is guessed from the usual places. */
export function shortPath(path) {
  return String(path || '').replace(/^(\/home\/[^/]+|\/Users\/[^/]+|\/root|[A-Z]:\\Users\\[^\\]+)(?=[/\\]|$)/, '~');
}

/** The last part of a path. */
export function baseName(path) {
  return String(path || '').split(/[/\\]/).filter(Boolean).pop() || String(path || '');
}

/** One line of at most so many characters. */
export function oneLine(text, most = 140) {
  const line = String(text ?? '').slice(0, most * 4).replace(/\s+/g, ' ').trim();
  return line.length > most ? `${line.slice(0, most - 1)}…` : line;
}

/** `3 files`, `1 file` */
export function count(number, word) {
  return `${number.toLocaleString('en')} ${word}${number === 1 ? '' : 's'}`;
}

/** The text of a message's content: a string, or blocks of which the texts count. */
export function textOf(content) {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return '';
  return content.filter((block) => block && block.type === 'text').map((block) => String(block.text ?? '')).join('\n');
}

/** The images of a message's content that can be shown. */
export function imagesOf(content) {
  if (!Array.isArray(content)) return [];
  return content.filter((block) => block && block.type === 'image').map(imageAddress).filter(Boolean);
}

/** A `data:` address for an image block, or null for what is no picture that a browser should decode. */
export function imageAddress(block) {
  const kind = /^image\/(png|jpeg|gif|webp)$/.exec(String(block.mimeType || '').toLowerCase());
  const data = typeof block.data === 'string' ? block.data : '';
  if (!kind || !/^[A-Za-z0-9+/=\s]+$/.test(data)) return null;
  return `data:${kind[0]};base64,${data.replace(/\s+/g, '')}`;
}

// Controls but tab and line feed, format characters, separators, what is unassigned or private, fillers, and what stands for a
// character that was no valid one. Joiners and selectors stay within an emoji.
// eslint-disable-next-line no-misleading-character-class -- a range of variation selectors, not a letter with a mark
const HIDDEN = /(?![\t\n])[\p{Cc}\p{Cf}\p{Cn}\p{Co}\p{Cs}\p{Zl}\p{Zp}\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\ufffc\ufffd\u{e0000}-\u{e0fff}]/gu;
const BLANKS = /(?! )\p{Zs}/gu;
const EMOJI = /\p{Extended_Pictographic}(?:\ufe0f?\p{Emoji_Modifier}?\u200d\p{Extended_Pictographic}|\ufe0f)*/gu;

/** A text whose hidden characters can be seen: `\u{202e}`. With `blanks`, blanks other than the usual one are shown, too. */
export function visible(text, { blanks = false } = {}) {
  const escaped = (part) => {
    const code = (letter) => `\\u{${letter.codePointAt(0).toString(16)}}`;
    const shown = part.replace(HIDDEN, code);
    return blanks ? shown.replace(BLANKS, code) : shown;
  };
  const whole = String(text ?? '');
  let out = '';
  let at = 0;
  for (const match of whole.matchAll(EMOJI)) {
    out += escaped(whole.slice(at, match.index)) + match[0];
    at = match.index + match[0].length;
  }
  return out + escaped(whole.slice(at));
}
