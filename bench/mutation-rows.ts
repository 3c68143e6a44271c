/** Rows from the results of a mutation check. */
import { type Row, single } from './rows.ts'

/** By file, with the status that Stryker gives each change. */
export interface MutationReport {
  readonly files: Readonly<Record<string, { readonly mutants: readonly { readonly status: string }[] }>>
}

const scoreMin = 90

/** The score of all files, with the target, and of each file with its number of mutants. */
export function mutationRows({ files }: MutationReport): Row[] {
  const mutantsOf = Object.entries(files).toSorted(([a], [b]) => a.localeCompare(b))
  const all = mutantsOf.flatMap(([, { mutants }]) => mutants)
  return [
    single(
      { name: 'mutation_score', what: describe('all rules', all), unit: '%', target: scoreMin, bound: 'at_least' },
      scoreOf(all),
    ),
    ...mutantsOf
      .filter(([, { mutants }]) => mutants.some(isCounted))
      .map(([file, { mutants }]) =>
        single({ name: `mutation_score ${file}`, what: describe(`\`${file}\``, mutants), unit: '%' }, scoreOf(mutants)),
      ),
  ]
}

type Mutants = readonly { readonly status: string }[]

const isDetected = ({ status }: { status: string }) => status === 'Killed' || status === 'Timeout'

/** Mutants that do not compile or were ignored by a comment count neither way. */
const isCounted = (mutant: { status: string }) =>
  isDetected(mutant) || mutant.status === 'Survived' || mutant.status === 'NoCoverage'

const scoreOf = (mutants: Mutants): number =>
  (mutants.filter(isDetected).length / mutants.filter(isCounted).length) * 100

const describe = (what: string, mutants: Mutants): string =>
  `${what}, ${mutants.filter(isCounted).length.toLocaleString('en')} changes`
