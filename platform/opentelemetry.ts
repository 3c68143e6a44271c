/**
 * The OpenTelemetry SDK: exporter, sampler, batches and resource follow the standard variables, which the SDK reads
 * itself. Loaded only when an endpoint is set.
 */
import { type Span as OtelSpan, propagation, ROOT_CONTEXT, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api'
import { W3CTraceContextPropagator } from '@opentelemetry/core'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import { detectResourcesSync, envDetectorSync, Resource } from '@opentelemetry/resources'
import { BatchSpanProcessor, type ReadableSpan, type SpanExporter } from '@opentelemetry/sdk-trace-base'
import { NodeTracerProvider } from '@opentelemetry/sdk-trace-node'
import { OpenTelemetryWorkflowClientInterceptor } from '@temporalio/interceptors-opentelemetry/lib/client/index.js'
import {
  makeWorkflowExporter,
  OpenTelemetryActivityInboundInterceptor,
} from '@temporalio/interceptors-opentelemetry/lib/worker/index.js'
import type { Span, Tracing } from './tracing.ts'

export interface OpenTelemetry extends Tracing {
  /** Exports the spans that have ended. */
  shutdown(): Promise<void>
}

/** @param serviceName the default of `OTEL_SERVICE_NAME`. */
export function createOpenTelemetry(serviceName: string): OpenTelemetry {
  const resource = new Resource({ 'service.name': serviceName }).merge(
    detectResourcesSync({ detectors: [envDetectorSync] }),
  )
  const processor = new BatchSpanProcessor(withoutContents(new OTLPTraceExporter()))
  const provider = new NodeTracerProvider({ resource, spanProcessors: [processor] })
  provider.register({ propagator: new W3CTraceContextPropagator() })
  const tracer = trace.getTracer('relay-control-plane')
  return {
    runInRequestSpan: (name, headers, run) => {
      const parent = propagation.extract(ROOT_CONTEXT, headers)
      return tracer.startActiveSpan(name, { kind: SpanKind.SERVER }, parent, async (span) => {
        try {
          return await run(spanOf(span))
        } finally {
          span.end()
        }
      })
    },
    startChildSpan: (name) =>
      trace.getActiveSpan()?.isRecording() ? spanOf(tracer.startSpan(name, { kind: SpanKind.CLIENT })) : undefined,
    clientInterceptor: new OpenTelemetryWorkflowClientInterceptor(),
    worker: {
      interceptors: {
        activity: [(ctx) => ({ inbound: new OpenTelemetryActivityInboundInterceptor(ctx) })],
      },
      sinks: { exporter: makeWorkflowExporter(processor, resource) },
    },
    shutdown: () => provider.shutdown(),
  }
}

const spanOf = (span: OtelSpan): Span => ({
  setName: (name) => void span.updateName(name),
  setAttribute: (name, value) => void span.setAttribute(name, value),
  fail: (kind) => void span.setAttribute('error.type', kind).setStatus({ code: SpanStatusCode.ERROR }),
  end: () => span.end(),
})

/** Those of the service's own spans and of the Temporal SDK. Others could contain values, such as a workflow's memo. */
const exportedAttributes = new Set([
  'http.request.method',
  'http.response.status_code',
  'http.route',
  'db.query.text',
  'db.system.name',
  'error.type',
  'temporalWorkflowId',
  'temporalActivityId',
  'temporalUpdateId',
  'run_id',
  'workflowId',
  'runId',
  'workflowType',
  'taskQueue',
])

/**
 * Exports without the messages of errors and without other attributes, which could contain secrets or personal data.
 */
const withoutContents = (exporter: SpanExporter): SpanExporter => ({
  export: (spans, onResult) => exporter.export(spans.map(withoutContent), onResult),
  shutdown: () => exporter.shutdown(),
  forceFlush: async () => exporter.forceFlush?.(),
})

const withoutContent = (span: ReadableSpan): ReadableSpan =>
  Object.create(span, {
    attributes: {
      value: Object.fromEntries(Object.entries(span.attributes).filter(([name]) => exportedAttributes.has(name))),
    },
    events: { value: [] },
    status: { value: { code: span.status.code } },
  }) as ReadableSpan
