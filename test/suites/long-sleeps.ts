/** Finds waits for time in tests, whose place is taken by waits for events. */

/** A wait ends on an event. Shorter pauses are the steps of polling. */
export const sleepMillisMax = 100

/** Files with a longer pause, and why no event can end it. */
export const exceptions: Readonly<Record<string, string>> = {
  'test/platform/batch.test.ts':
    'stands for a write that takes longer than its neighbours; nothing waits for it by time',
  'test/platform/periodic-task.test.ts': 'a task that runs until it is aborted',
  'test/support/hetzner-machines.ts': 'an imitation of machines that take time to stop, as long as the test says',
  'test/support/hetzner-server.ts': 'an imitation of a service that answers late, as late as the test says',
  'test/support/load-balancer.ts': 'an imitation of a load balancer, which checks its targets at intervals',
  'test/support/sls-server.ts': 'an imitation of a server that ends a stream late',
  'test/support/numbered-stream.ts': 'encoders and players that call again as late as real ones do',
  'test/support/picture-stream.ts': 'an encoder that calls again as late as real ones do',
  'test/support/obs-picture.ts': 'the interval at which a picture is sampled, which is what the figures are made of',
  'test/support/scene-switcher.ts': 'an imitation of a program that polls once a second',
  'test/support/obs-process.ts': 'the time that a program has to end by itself; its end is waited for',
  'test/support/emulated-path.ts': 'an imitation of a link that delays its datagrams',
  'test/workflows/subscription-relays.test.ts': 'offsets of at most 50 ms between requests that race',
  'test/support/time-skipping.ts': 'skipped time, which takes no time',
}

/** The calls of `sleep` and `setTimeout` in a source whose time is longer than {@link sleepMillisMax}, or no number. */
export function findLongSleeps(source: string): string[] {
  return [...source.matchAll(/\b(sleep|setTimeout)\(/g)].flatMap(({ 0: call, index }) => {
    const from = index + call.length
    const args = argumentsFrom(source, from)
    // The first argument of `setTimeout` is the function, unless it is the one of `timers/promises` under its own name.
    const time = call.startsWith('sleep') || args.length === 1 ? args[0] : args[1]
    const millis = Number((time ?? '').replaceAll('_', ''))
    return millis <= sleepMillisMax ? [] : [`${call}${args.join(', ')})`]
  })
}

/** The arguments of a call, without strings that contain brackets in mind: no test has one there. */
function argumentsFrom(source: string, from: number): string[] {
  const args = ['']
  let depth = 0
  for (const character of source.slice(from)) {
    if (depth === 0 && character === ')') break
    if ('([{'.includes(character)) depth += 1
    if (')]}'.includes(character)) depth -= 1
    if (depth === 0 && character === ',') args.push('')
    else args[args.length - 1] += character
  }
  return args.map((argument) => argument.replace(/\s+/g, ' ').trim())
}
