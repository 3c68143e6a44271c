/** What the service needs of OpenTelemetry, without its packages (start-tracing.ts). */
import type { IncomingHttpHeaders } from 'node:http'
import type { WorkflowClientInterceptor } from '@temporalio/client'
import type { WorkerOptions } from '@temporalio/worker'

export interface Span {
  setName(name: string): void
  setAttribute(name: SpanAttribute, value: string | number): void
  /** @param kind the code or the name of the error. Messages are left out, since they may contain values. */
  fail(kind: string): void
  end(): void
}

/** The attributes of the service's own spans, by the semantic conventions of OpenTelemetry. */
export type SpanAttribute =
  | 'http.request.method'
  | 'http.response.status_code'
  | 'http.route'
  | 'db.query.text'
  | 'db.system.name'

export interface Tracing {
  /** Runs within a new span. Its parent is the span of the caller, if the headers have a valid `traceparent`. */
  runInRequestSpan<Result>(
    name: string,
    headers: IncomingHttpHeaders,
    run: (span: Span) => Promise<Result>,
  ): Promise<Result>
  /** Starts a child of the current span; undefined outside of a sampled span. */
  startChildSpan(name: string): Span | undefined
  /** Passes the current span to workflows. */
  readonly clientInterceptor: WorkflowClientInterceptor
  /** For a worker whose workflow bundle has the interceptors. */
  readonly worker: Pick<WorkerOptions, 'interceptors' | 'sinks'>
}
