/** The order of the test files: the slow ones first, so that none of them runs on alone at the end. */
import { relative } from 'node:path'
import { BaseSequencer, type TestSpecification, type Vitest } from 'vitest/node'
import { slowFiles } from './slow-files.ts'

export class SlowFilesFirst extends BaseSequencer {
  readonly #root: string

  constructor(vitest: Vitest) {
    super(vitest)
    this.#root = vitest.config.root
  }

  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rankOf = ({ moduleId }: TestSpecification) => {
      const rank = slowFiles.indexOf(relative(this.#root, moduleId))
      return rank < 0 ? slowFiles.length : rank
    }
    return (await super.sort(files)).toSorted((a, b) => rankOf(a) - rankOf(b))
  }
}
