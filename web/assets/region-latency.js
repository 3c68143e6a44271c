/**
 * Shows the latency from this browser to each region with a ping address. The replies are not read, and the requests
 * carry neither cookies nor the address of the page.
 */

const attempts = 3
const timeoutMillis = 3000

/** Milliseconds by address; undefined while it is measured and for an address that does not reply. */
const latencies = new Map()

async function measure(url) {
  const request = async () => {
    const startedAt = performance.now()
    await fetch(url, {
      mode: 'no-cors',
      cache: 'no-store',
      credentials: 'omit',
      referrerPolicy: 'no-referrer',
      signal: AbortSignal.timeout(timeoutMillis),
    })
    return performance.now() - startedAt
  }
  // The first request also looks up the name and connects.
  await request()
  const times = []
  for (let attempt = 0; attempt < attempts; attempt += 1) times.push(await request())
  return times.toSorted((a, b) => a - b)[Math.floor(attempts / 2)]
}

async function measureRegions() {
  for (const element of document.querySelectorAll('[data-ping]')) {
    const { ping } = element.dataset
    if (latencies.has(ping)) continue
    latencies.set(ping, undefined)
    latencies.set(ping, await measure(ping).catch(() => undefined))
    showLatencies()
  }
}

function showLatencies() {
  for (const element of document.querySelectorAll('[data-ping]')) {
    const millis = latencies.get(element.dataset.ping)
    const text = millis === undefined ? '' : ` · ${Math.max(1, Math.round(millis))} ms from here`
    if (element.textContent !== text) element.textContent = text
  }
}

document.addEventListener('parts-replaced', () => {
  showLatencies()
  measureRegions()
})
measureRegions()
