/** Inputs for parsers: valid ones with bytes that are changed, inserted or missing, from a seed. */
import { createRandom } from '../../support/random.ts'

const inputs = 20_000

export function* mutatedInputs(...valid: readonly [Buffer, ...Buffer[]]): Generator<Buffer> {
  const random = createRandom(36)
  const below = (limit: number) => Math.floor(random.next() * limit)
  for (let n = 0; n < inputs; n += 1) {
    const data = Buffer.from(random.pick(valid))
    for (let changes = 1 + below(6); changes > 0; changes -= 1) data[below(data.length)] = below(256)
    const cut = below(data.length + 1)
    const change = random.weighted({ none: 4, shorter: 1, longer: 1 })
    if (change === 'none') yield data
    else if (change === 'shorter') yield data.subarray(0, cut)
    else yield Buffer.concat([data.subarray(0, cut), Buffer.from([below(256)]), data.subarray(cut)])
  }
}
