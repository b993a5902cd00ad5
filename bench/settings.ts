/** The files that the programs of the bench are started with. */

export interface Places {
  readonly upstreamPort: number
  readonly port: number
  readonly opsPort: number
  /** `{ kind: sqlite, path: ... }`, as gateway.yaml writes it. */
  readonly store: string
}

/** The pipeline and the limits of the product as they are; only the vendor is ours. */
export const gatewayYaml = ({ upstreamPort, port, opsPort, store }: Places): string => `
listen: { host: 127.0.0.1, port: ${port} }
ops: { host: 127.0.0.1, port: ${opsPort} }
store: ${store}
catalog: ./catalog.yaml
vendors:
  bench: { adapter: anthropic, origin: "http://127.0.0.1:${upstreamPort}", secrets: [{ env: BENCH_VENDOR_KEY }] }
plugins:
  - metrics
  - access-log
  - edge
  - maintenance: { on: false }
  - body-size: { max: 25MB }
  - auth
  - rate-limit:
      common: { requests: 120, window: 60s }
      polling: { requests: 300, window: 60s }
      chatbot: { requests: 30, window: 60s }
  - model
  - pricing: { output_allowance: 8192, reservations: { requests: 300, window: 60s } }
endpoints: all
mounts: { vendor-a: [vendor-a, anthropic], vendor-b: [vendor-b, google] }
`

const model = (name: string): string => `
  ${name}:
    type: llm
    family: anthropic
    targets: [{ vendor: bench, model: ${name} }]
    max_output: 64000
    price: { input: 3000 per 1M tokens, cache_read: 300 per 1M tokens, output: 15000 per 1M tokens }`

export const catalogYaml = `models:${["bench-whole", "bench-stream", "bench-first", "bench-open"].map(model).join("")}\n`

/** One process, so that its CPU time is the whole; connections to the upstream are kept. */
export const nginxConf = (port: number, upstreamPort: number): string => `
daemon off;
master_process off;
pid nginx.pid;
error_log stderr crit;
events { worker_connections 8192; }
http {
  access_log off;
  client_body_temp_path body;
  proxy_temp_path proxy;
  fastcgi_temp_path fastcgi;
  uwsgi_temp_path uwsgi;
  scgi_temp_path scgi;
  keepalive_requests 1000000;
  upstream vendor { server 127.0.0.1:${upstreamPort}; keepalive 1024; keepalive_requests 1000000; }
  server {
    listen 127.0.0.1:${port} backlog=4096;
    location / {
      proxy_pass http://vendor;
      proxy_http_version 1.1;
      proxy_set_header connection "";
      proxy_buffering off;
      proxy_read_timeout 1h;
    }
  }
}
`
