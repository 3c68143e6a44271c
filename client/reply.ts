/** The bodies of the API's successful replies. */
import type { paths } from './api-types.ts'

type JsonOf<Operation, Status extends number> = Operation extends {
  responses: Record<Status, { content: { 'application/json': infer Body } }>
}
  ? Body
  : never

/** The JSON body of a reply, such as `Reply<'get', '/relay/active'>`. `never` when the API has no such operation. */
export type Reply<
  Method extends string,
  Path extends string,
  Status extends number = 200,
> = `/api/v1${Path}` extends infer Key extends keyof paths
  ? Method extends keyof paths[Key]
    ? JsonOf<paths[Key][Method], Status>
    : never
  : never
