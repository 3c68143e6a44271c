/** Says before the system tests what they miss on this machine, instead of one failure a test. */
import { findTestServer } from '../support/temporal-test-server.ts'
import { findChromium } from './chromium.ts'

const say = (text: string) => void process.stderr.write(`${text}\n`)

if (findChromium() === undefined) {
  say(
    'The system tests need Chromium, and there is none on PATH.\n' +
      '  Debian or Ubuntu:  apt-get install --no-install-recommends chromium\n' +
      '  elsewhere:         SVC_TEST_CHROMIUM=<path of a Chromium or Chrome> npm run test:system',
  )
  process.exitCode = 1
}

await findTestServer(say).catch((error: Error) => {
  say(
    `The system tests need Temporal's test server, in which days pass in no time, and it can't be had: ${error.message}\n` +
      '  Java runs it, and Maven gets it once.\n' +
      '  Debian or Ubuntu:  apt-get install --no-install-recommends default-jre-headless maven\n' +
      '  elsewhere:         put `java` and `mvn` on the PATH',
  )
  process.exitCode = 1
})
