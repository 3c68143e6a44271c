/** Copying addresses without showing them, and hiding again what was shown: the reader's screen may be on the air. */

const shownMillis = 60_000
const saidMillis = 2000

// What only works with this script is there from now on.
document.documentElement.classList.add('has-script')

document.addEventListener('click', ({ target }) => {
  const button = target instanceof Element ? target.closest('[data-copy], [data-follow]') : null
  if (!button) return
  if (button.dataset.copy) copy(button)
  else location.assign(heldBy(button.dataset.follow))
})

/** What the page holds out of sight under that id: a link, or text. */
function heldBy(id) {
  const holder = document.getElementById(id)
  return holder.getAttribute('href') ?? holder.textContent
}

async function copy(button) {
  const says = button.querySelector('[data-says]')
  if (says.dataset.said) return
  says.dataset.said = says.textContent
  try {
    await navigator.clipboard.writeText(heldBy(button.dataset.copy))
    says.textContent = 'Copied'
  } catch {
    // Browsers allow it to pages that came safely, and may still refuse it.
    says.textContent = 'Not allowed'
  }
  const news = document.querySelector('[data-news]')
  const told = button.textContent
  if (news) news.textContent = told
  setTimeout(() => {
    says.textContent = says.dataset.said
    delete says.dataset.said
    if (news?.textContent === told) news.textContent = ''
  }, saidMillis)
}

const timers = new WeakMap()

// These events do not bubble, but they are seen on their way down.
document.addEventListener(
  'toggle',
  ({ target }) => {
    if (!(target instanceof HTMLDetailsElement) || !target.matches('[data-secret]')) return
    clearTimeout(timers.get(target))
    if (target.open) timers.set(target, setTimeout(hide, shownMillis, target))
  },
  true,
)

document.addEventListener('visibilitychange', () => {
  if (document.hidden) for (const shown of document.querySelectorAll('details[data-secret][open]')) hide(shown)
})

function hide(shown) {
  const hadFocus = shown.contains(document.activeElement)
  shown.open = false
  if (hadFocus) shown.querySelector('summary').focus()
}
