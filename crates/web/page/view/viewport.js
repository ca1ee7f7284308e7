// The keyboard of a phone covers the lower part of the page in some browsers instead of making it smaller. The page follows
// what can be seen.

export function followViewport() {
  const seen = globalThis.visualViewport;
  if (!seen) return;
  const follow = () => {
    const isCovered = seen.scale === 1 && innerHeight - seen.height > 60;
    if (isCovered) document.documentElement.style.setProperty('--height', `${Math.round(seen.height)}px`);
    else document.documentElement.style.removeProperty('--height');
    if (isCovered) scrollTo(0, 0);
  };
  seen.addEventListener('resize', follow);
}
