import { expect, test } from 'vitest'
import { parseFleetArguments, UsageError } from '../../platform/fleet-arguments.ts'

const parse = (words: string) => parseFleetArguments(words === '' ? [] : words.split(' '))

test.each([
  ['status', { name: 'status', json: false }],
  ['status --json', { name: 'status', json: true }],
  ['reconcile', { name: 'reconcile', json: false, dryRun: false, force: false }],
  ['--dry-run reconcile --force --json', { name: 'reconcile', json: true, dryRun: true, force: true }],
  ['check', { name: 'check', json: false }],
  ['check --json', { name: 'check', json: true }],
  ['adopt --name production', { name: 'adopt', json: false, fleetName: 'production', force: false }],
  ['adopt --force --name=eu-1 --json', { name: 'adopt', json: true, fleetName: 'eu-1', force: true }],
  ['drain eu-central', { name: 'drain', region: 'eu-central' }],
  ['resume eu-central', { name: 'resume', region: 'eu-central' }],
])('%s', (words, command) => {
  expect(parse(words)).toEqual(command)
})

test.each([
  ['statsu', /^statsu is not a command\. The commands are: status, reconcile, check, adopt, drain, resume\.$/],
  ['--dry-run', /^--dry-run is not a command/],
  ['status --force', /^--force is not an option of status\. Its options are: --json, --help\.$/],
  [
    'reconcile --dryrun',
    /^--dryrun is not an option of reconcile\. Its options are: --dry-run, --force, --json, --help\.$/,
  ],
  ['reconcile --force=no', /^--force takes no value/],
  ['reconcile eu', /^eu is one word too many\. Usage: npm run fleet -- reconcile/],
  ['adopt', /^The name of the fleet is missing\. Usage: npm run fleet -- adopt --name NAME/],
  ['adopt --name', /^The name of the fleet is missing/],
  ['adopt production', /^production is one word too many/],
  ['adopt --name Production', /^Production is not 1 to 32 lower-case letters/],
  ['adopt --nmae x', /^--nmae is not an option of adopt\. Its options are: --name, --force, --json, --help\.$/],
  ['check --name x', /^--name is not an option of check/],
  ['drain', /^The name of a region is missing\. Usage: npm run fleet -- drain REGION$/],
  ['drain eu us', /^us is one word too many/],
  ['drain eu --force', /^--force is not an option of drain\. Its options are: --help\.$/],
])('%s is refused with the wrong word and the right ones', (words, message) => {
  expect(() => parse(words)).toThrow(UsageError)
  expect(() => parse(words)).toThrow(message)
})

test.each(['status', 'reconcile', 'check', 'adopt', 'drain', 'resume'])(
  'the help of %s shows its usage and an example',
  (name) => {
    const example = new RegExp(`^Usage: npm run fleet -- ${name}[\\s\\S]*\\n {2}npm run fleet -- ${name}`)
    expect(parse(`${name} --help`)).toEqual({ name: 'help', text: expect.stringMatching(example) })
  },
)

test('the help without a command lists the usage of each', () => {
  for (const words of ['', '--help', '-h'])
    expect(parse(words)).toEqual({
      name: 'help',
      text: expect.stringMatching(/status.*\n.*reconcile.*\n.*check.*\n.*adopt.*\n.*drain/),
    })
})
