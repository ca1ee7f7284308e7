// Runs before anything is drawn: the token leaves the address bar, and the theme that was chosen holds from the first picture.

(() => {
  const url = new URL(location.href);
  const token = url.searchParams.get('token');
  if (token !== null) {
    url.searchParams.delete('token');
    history.replaceState(history.state, '', url.pathname + url.search + url.hash);
    try { sessionStorage.setItem('pinion-token', token); } catch { globalThis.pinionToken = token; }
  }
  try {
    const theme = localStorage.getItem('pinion-theme');
    if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme;
  } catch { /* storage is off */ }
})();
