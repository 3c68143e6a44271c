/** `npm run build:relay`: builds the bundle of this program ahead of time, for a container image. */
import { relayBundle } from './relay-bundle.ts'

process.stdout.write(`dist/${(await relayBundle()).fileName}\n`)
