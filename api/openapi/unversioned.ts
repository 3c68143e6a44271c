/** The operations outside the base path. Their routes are in `api/unversioned-routes.ts`. */
import { z } from 'zod'
import type { OperationText } from '../http/operation-text.ts'
import type { Operation } from './operations.ts'
import type { SchemaConverter } from './schemas.ts'

const Check = z.enum(['ok', 'failing'])

const Health = z.object({
  status: z.enum(['ok', 'failing']),
  checks: z.object({ postgres: Check, temporal: Check, worker: Check, tasks: Check }),
})

const statusExample = (status: string) => ({ example: { summary: status, value: { status } } })
const allOk = { postgres: 'ok', temporal: 'ok', worker: 'ok', tasks: 'ok' }

interface UnversionedOperation extends OperationText {
  readonly path: string
  /** A schema for JSON, otherwise a content type. */
  readonly answers: Readonly<Record<number, z.ZodType | string>>
}

export const unversionedOperations: readonly UnversionedOperation[] = [
  {
    path: '/health',
    id: 'getHealth',
    summary: 'Check the service with its dependencies',
    description:
      'For people and for monitoring. 503 with the same body when Postgres, Temporal or every worker is unavailable, or when tasks or commands have waited for more than 30 s for a worker to carry them out.',
    answers: { 200: Health, 503: Health },
    examples: {
      replies: {
        200: { ok: { summary: 'Everything works', value: { status: 'ok', checks: allOk } } },
        503: {
          failing: {
            summary: 'No worker is running',
            value: { status: 'failing', checks: { ...allOk, worker: 'failing' } },
          },
        },
      },
    },
  },
  {
    path: '/livez',
    id: 'getLiveness',
    summary: 'Check whether the process runs',
    description: 'Always 200 while the process can reply. A supervisor restarts a process that does not reply.',
    answers: { 200: z.object({ status: z.literal('ok') }) },
    examples: { replies: { 200: statusExample('ok') } },
  },
  {
    path: '/readyz',
    id: 'getReadiness',
    summary: 'Check whether the process takes requests',
    description:
      'For load balancers. 503 before the migrations have run, and while the process shuts down and finishes its requests.',
    answers: {
      200: z.object({ status: z.literal('ready') }),
      503: z.object({ status: z.enum(['starting', 'draining']) }),
    },
    examples: { replies: { 200: statusExample('ready'), 503: statusExample('draining') } },
  },
  {
    path: '/metrics',
    id: 'getMetrics',
    summary: 'Read the metrics',
    description: 'In the text format of Prometheus, for all processes of the service.',
    answers: { 200: 'text/plain' },
    examples: {
      replies: { 200: { sample: { summary: 'Two lines', value: 'svc_workers_alive 1\nsvc_metrics_complete 1\n' } } },
    },
  },
  {
    path: '/openapi.json',
    id: 'getOpenapiDocument',
    summary: 'Read this document',
    description: 'The OpenAPI 3.1 document that this reference shows.',
    answers: { 200: z.looseObject({ openapi: z.string() }) },
    examples: { replies: { 200: { sample: { summary: 'The first member', value: { openapi: '3.1.0' } } } } },
  },
]

export const describeUnversioned = (converter: SchemaConverter): Record<string, Record<string, Operation>> =>
  Object.fromEntries(
    unversionedOperations.map((operation) => [operation.path, { get: describe(operation, converter) }]),
  )

const describe = (
  { id, summary, description, answers, examples }: UnversionedOperation,
  converter: SchemaConverter,
): Operation => ({
  operationId: id,
  summary,
  description,
  tags: ['Service'],
  security: [],
  parameters: [],
  responses: Object.fromEntries(
    Object.entries(answers).map(([status, answer]) => {
      const schema = typeof answer === 'string' ? { type: 'string' } : converter.convert(answer)
      const content = { schema, examples: examples?.replies?.[Number(status)] }
      const type = typeof answer === 'string' ? answer : 'application/json'
      return [status, { description: status === '200' ? 'Success' : 'Not available', content: { [type]: content } }]
    }),
  ),
})
