/** The program behind `npm run fleet`. */
import { runFleetCommand } from './commands.ts'

const { stdout, stderr, code } = await runFleetCommand(process.argv.slice(2))
process.stderr.write(stderr)
// Ends calls to providers that hang.
process.stdout.write(stdout, () => process.exit(code))
