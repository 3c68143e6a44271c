/** Checks the requirements of the system tests before they run, instead of one failure per test. */
import { findLiveTransmit } from '../../relay-node/live-transmit-engine.ts'
import { findTestServer } from '../support/temporal-test-server.ts'
import { findChromium } from './chromium.ts'

const say = (text: string) => void process.stderr.write(`${text}\n`)

if (findChromium() === undefined) {
  say(
    'The system tests require Chromium, which is not on PATH.\n' +
      '  Debian or Ubuntu:  apt-get install --no-install-recommends chromium\n' +
      '  elsewhere:         SVC_TEST_CHROMIUM=<path of a Chromium or Chrome> npm run test:system',
  )
  process.exitCode = 1
}

if (findLiveTransmit(process.env.PATH ?? '') === undefined) {
  say(
    'The system tests require srt-live-transmit, which is not on PATH.\n' +
      '  Debian or Ubuntu:  apt-get install --no-install-recommends srt-tools',
  )
  process.exitCode = 1
}

await findTestServer(say).catch((error: Error) => {
  say(
    `The system tests require Temporal's test server, which can skip time, and it could not be installed: ${error.message}\n` +
      '  Java runs it, and Maven downloads it once.\n' +
      '  Debian or Ubuntu:  apt-get install --no-install-recommends default-jre-headless maven\n' +
      '  elsewhere:         put `java` and `mvn` on the PATH',
  )
  process.exitCode = 1
})
