// Before the first paint: the chosen colours and language, so that nothing flashes.
;(() => {
  let scheme = 'auto'
  let lang = ''
  try {
    scheme = localStorage.getItem('mantine-color-scheme-value') || 'auto'
    lang = localStorage.getItem('trackbed.lang') || ''
  } catch {}
  const dark = scheme === 'dark' || (scheme === 'auto' && matchMedia('(prefers-color-scheme: dark)').matches)
  document.documentElement.setAttribute('data-mantine-color-scheme', dark ? 'dark' : 'light')
  document.documentElement.lang = (lang || navigator.language).startsWith('zh') ? 'zh-CN' : 'en'
})()
