/** Copies addresses without showing them, and hides revealed ones again: the visitor may be sharing the screen. */

const revealMillis = 60_000
const feedbackMillis = 2000

// Shows the elements that need this script.
document.documentElement.classList.add('has-script')

document.addEventListener('click', ({ target }) => {
  const button = target instanceof Element ? target.closest('[data-copy], [data-follow]') : null
  if (!button) return
  if (button.dataset.copy) copy(button)
  else location.assign(readHidden(button.dataset.follow))
})

/** The address of a hidden link, or the text of another hidden element. */
function readHidden(id) {
  const element = document.getElementById(id)
  return element.getAttribute('href') ?? element.textContent
}

async function copy(button) {
  const label = button.querySelector('[data-label]')
  if (label.dataset.original) return
  label.dataset.original = label.textContent
  try {
    await navigator.clipboard.writeText(readHidden(button.dataset.copy))
    label.textContent = 'Copied'
  } catch {
    // Browsers require a secure context, and can deny permission.
    label.textContent = 'Couldn’t copy'
  }
  const announcements = document.querySelector('[data-announcements]')
  const feedback = button.textContent
  if (announcements) announcements.textContent = feedback
  setTimeout(() => {
    label.textContent = label.dataset.original
    delete label.dataset.original
    if (announcements?.textContent === feedback) announcements.textContent = ''
  }, feedbackMillis)
}

const timers = new WeakMap()

// Toggle events do not bubble, so they are handled in the capture phase.
document.addEventListener(
  'toggle',
  ({ target }) => {
    if (!(target instanceof HTMLDetailsElement) || !target.matches('[data-secret]')) return
    clearTimeout(timers.get(target))
    if (!target.open) return
    timers.set(target, setTimeout(hide, revealMillis, target))
    const code = target.querySelector('img[data-src]')
    if (code) code.src = code.dataset.src
  },
  true,
)

document.addEventListener('visibilitychange', () => {
  if (document.hidden) for (const details of document.querySelectorAll('details[data-secret][open]')) hide(details)
})

function hide(details) {
  const hadFocus = details.contains(document.activeElement)
  details.open = false
  if (hadFocus) details.querySelector('summary').focus()
}
