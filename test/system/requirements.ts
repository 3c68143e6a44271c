/** Says before the system tests what they miss on this machine, instead of one failure a test. */
import { findChromium } from './chromium.ts'

if (findChromium() === undefined) {
  process.stderr.write(
    'The system tests need Chromium, and there is none on PATH.\n' +
      '  Debian or Ubuntu:  apt-get install --no-install-recommends chromium\n' +
      '  elsewhere:         SVC_TEST_CHROMIUM=<path of a Chromium or Chrome> npm run test:system\n',
  )
  process.exitCode = 1
}
