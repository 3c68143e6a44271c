// Refreshes the parts of a page that are marked with `data-refreshes`, until the page has a part with `data-final`.
// Everything works without this script too.

const intervalMillis = 10_000

const names = [...document.querySelectorAll('[data-refreshes]')].map((part) => part.dataset.refreshes)
const timer = names.length > 0 ? setInterval(refresh, intervalMillis) : undefined

/** Skips hidden pages, and parts in which someone is about to act. A part that shows the fresh one itself stays. */
async function refresh() {
  if (document.hidden) return
  const response = await fetch(location.href, {
    cache: 'no-store',
    headers: { 'X-Unattended': 'true' },
  }).catch(() => undefined)
  // The sign-in page: the session has ended. A token that is exchanged leads back to this page.
  if (response && new URL(response.url).pathname !== location.pathname) location.reload()
  if (!response?.ok) return
  const fresh = new DOMParser().parseFromString(await response.text(), 'text/html')
  for (const name of names) replace(name, fresh)
  if (document.querySelector('[data-final="true"]')) clearInterval(timer)
}

/**
 * Keeps what was opened and scrolled.
 * @param {string} name
 * @param {Document} fresh
 */
function replace(name, fresh) {
  const [before, after] = [document, fresh].map((root) => root.querySelector(`[data-refreshes="${CSS.escape(name)}"]`))
  if (!before || !after) return
  if (!before.dispatchEvent(new CustomEvent('refreshed', { detail: after, cancelable: true }))) return
  if (before.contains(document.activeElement) || before.querySelector('.act[open]')) return
  const pairs = (selector) => {
    const replaced = [...after.querySelectorAll(selector)]
    return [...before.querySelectorAll(selector)].map((element, index) => [element, replaced[index]])
  }
  const [details, tables] = [pairs('details'), pairs('.table-scroll').map(([from, to]) => [from.scrollLeft, to])]
  for (const [from, to] of details) if (to) to.open = from.open
  before.replaceWith(after)
  for (const [scrollLeft, to] of tables) if (to) to.scrollLeft = scrollLeft
  // `site.js` shows the times of the new part in the local time zone.
  document.dispatchEvent(new Event('parts-replaced'))
}
