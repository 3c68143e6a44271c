/** Refusals of the API on pages of the console. */
import type { ApiResult } from '../../client/api-error.ts'
import type { Document } from '../page.ts'
import { type Problem, ProblemMessage } from '../pages/messages.tsx'
import { problemOf } from '../pages/refusal-text.ts'
import type { ConsoleSection } from './console-document.tsx'

/** Operators see the code too: it is in the documentation and in the logs. */
export const withCode = (problem: Problem): Problem => ({ ...problem, text: `${problem.text} (${problem.code})` })

/** Of a list whose filter or cursor the API does not accept, among others. */
export const listProblem = (result: ApiResult): Problem | undefined =>
  result.response.status === 200
    ? undefined
    : withCode(problemOf(result, { invalid_request: 'The filter is not valid. Check the ids and the values.' }))

/** Instead of a page whose content the API refused. */
export const refusedPage = (section: ConsoleSection, title: string, result: ApiResult): Document => ({
  name: 'operator-refused',
  title,
  console: section,
  status: result.response.status,
  page: (
    <>
      <div class="page-head">
        <h1>{title}</h1>
      </div>
      <ProblemMessage problem={withCode(problemOf(result))} />
    </>
  ),
})
