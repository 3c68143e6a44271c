/** Makes each statement that runs within a span a child of it, with its text and without its parameters. */
import type { Tracing } from '../platform/tracing.ts'
import type { Database } from './connection.ts'

/** The part of a query of the driver that runs it. Fragments of other statements are queries too, and never run. */
interface RunnableQuery {
  handler: ((query: RunnableQuery) => void) & { readonly debug?: unknown }
  /** The text with placeholders, once it runs. */
  readonly string?: string
}

const textLengthMax = 4000

/** @returns a pool that behaves like `sql`, in transactions and reserved connections too. */
export const withStatementSpans = (sql: Database, tracing: Pick<Tracing, 'startChildSpan'>): Database =>
  wrap(sql, tracing)

function wrap<Sql extends object>(sql: Sql, tracing: Pick<Tracing, 'startChildSpan'>): Sql {
  const traceResult = (result: unknown) => {
    if (isRunnable(result)) traceQuery(result, tracing)
    return result
  }
  return new Proxy(sql, {
    apply: (target, self, args) => traceResult(Reflect.apply(target as never, self, args)),
    get: (target, name, receiver) => {
      const value: unknown = Reflect.get(target, name, receiver)
      if (typeof value !== 'function') return value
      if (name === 'unsafe') return (...args: unknown[]) => traceResult(value.apply(target, args))
      if (name === 'reserve') return async () => wrap((await value.apply(target)) as object, tracing)
      if (name === 'begin' || name === 'savepoint')
        return (...args: unknown[]) =>
          value.apply(
            target,
            args.map((arg) => wrapCallback(arg, tracing)),
          )
      return value
    },
  })
}

/** The callback of a transaction, whose argument runs its statements. */
const wrapCallback = (argument: unknown, tracing: Pick<Tracing, 'startChildSpan'>) =>
  typeof argument === 'function' ? (sql: object) => argument(wrap(sql, tracing)) : argument

const isRunnable = (value: unknown): value is RunnableQuery & Promise<unknown> =>
  value instanceof Promise && 'handler' in value && typeof value.handler === 'function'

function traceQuery(query: RunnableQuery & Promise<unknown>, tracing: Pick<Tracing, 'startChildSpan'>): void {
  const run = query.handler
  const traced = (running: RunnableQuery): void => {
    const span = tracing.startChildSpan('SQL')
    run(running)
    if (!span) return
    const end = () => {
      span.setAttribute('db.system.name', 'postgresql')
      if (query.string !== undefined) span.setAttribute('db.query.text', compact(query.string))
      span.end()
    }
    // The method of the driver would run the query again.
    Promise.prototype.then.call(query, end, (error: { readonly code?: string }) => {
      span.fail(String(error.code ?? 'error'))
      end()
    })
  }
  query.handler = Object.assign(traced, { debug: run.debug })
}

const compact = (text: string): string => text.replaceAll(/\s+/g, ' ').trim().slice(0, textLengthMax)
