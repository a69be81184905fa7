/** A stand-in for the server while the page is worked on: `npm run mock`. Made-up records, the real shapes. */

const NOW = () => Date.now() * 1000
const MIN = 60_000_000
const digest = (n) => `b3:${Array.from({ length: 64 }, (_, i) => ((n * 7 + i * 11) % 16).toString(16)).join('')}`
const OWNERS = ['admin', 'lin.wei', 'sofia', '王小明']
const STATES = [
  'running',
  'finished',
  'finished',
  'failed',
  'queued',
  'finished',
  'paused',
  'stopped',
  'starting',
  'held',
  'finished',
  'preparing',
]
const NAMES = [
  'stdlib-gpt-wide',
  '',
  'baseline-lr3e-4',
  '损失对照-学习率扫描',
  'ablation/no-warmup',
  'a-very-long-name-that-goes-on-and-on-with-a-meaningful-ending-v17',
  '<b>html</b> name',
]
const CAUSE = { finished: 'done', failed: 'user_error', paused: 'paused', stopped: 'stopped' }

function run(n) {
  const state = STATES[n % STATES.length]
  const age = n * 7 * MIN
  const started = ['queued', 'held', 'preparing'].includes(state) ? 0 : NOW() - age + MIN
  const ended = ['finished', 'failed', 'stopped', 'paused'].includes(state) ? started + 14 * MIN : 0
  const step = state === 'finished' ? 2000 : Math.floor((n * 377) % 1900) + 40
  return {
    id: `run_${String(n).padStart(4, '0')}k3f8q2`,
    ref: `demo#${900 - n}`, number: 900 - n, project: 'demo', space: 'default', name: NAMES[n % NAMES.length],
    state, cause: CAUSE[state] ?? '', owner: OWNERS[n % OWNERS.length], tags: n % 3 ? [] : ['baseline', 'wide'].slice(0, 1 + (n % 2)),
    priority: 'normal', cards: n % 5 === 0 ? 2 : 1, created_us: NOW() - age, queued_us: NOW() - age, started_us: started, ended_us: ended,
    attempt: state === 'failed' ? 3 : 1, card_seconds: started ? ((ended || NOW()) - started) / 1e6 : 0, contact_us: NOW(), version: 1,
    ...(started ? { progress: { step, steps_total: 2000, seconds_left: state === 'running' ? 431 : null, updated_us: NOW() - 2e6 } } : {}),
    ...(state === 'queued' ? { reason: { code: 'no_free_cards', params: { wanted: 2, free: 1 } } } : {}),
    ...(state === 'failed' ? { reason: { code: 'rank_exit', params: { code: 1, rank: 0 } } } : {}),
    metrics: { 'train/loss': n % 9 === 3 ? 'NaN' : 2.1 + (n % 17) / 20, 'eval/loss': 2.3 + (n % 13) / 20 }, params: { lr: 0.0003 * (1 + (n % 4)), width: 256 },
  } // biome-ignore format: made-up data
}

const ALL = Array.from({ length: 640 }, (_, i) => run(i))
const KEYS = [
  'loss',
  'train/loss',
  'train/lr',
  'train/grad_norm',
  'train/tokens_per_s',
  'eval/loss',
  'eval/accuracy',
  'val/AR@100',
  '损失',
  'system/cpu',
  'system/memory',
  'system/card0/util',
]

function value(key, step) {
  const noise = Math.sin(step * 12.9898 + key.length) * 43758.5453
  const r = noise - Math.floor(noise)
  if (key.includes('lr')) return 0.001 * Math.min(1, step / 100) * (0.5 + 0.5 * Math.cos((Math.PI * step) / 2000))
  if (/loss|损失/.test(key)) return 2.05 + 3.5 * Math.exp(-step / 260) + (r - 0.5) * 0.24
  if (key.includes('grad')) return step === 1200 ? 'Infinity' : step % 640 === 320 ? 'NaN' : 0.6 + r * 0.5
  if (key.includes('tokens')) return 41000 + r * 3000
  return 0.4 + 0.5 * (1 - Math.exp(-step / 500)) + r * 0.04
}

function series(ask, key) {
  const bucketed = key.startsWith('train/loss')
  const sparse = key.startsWith('eval') || key.startsWith('val')
  const from = ask.from ?? 0
  const to = ask.to ?? 1400
  const steps = Array.from({ length: 1401 }, (_, i) => i).filter(
    (s) => s >= from && s <= to && (!sparse || s % 100 === 0),
  )
  const x = ask.x === 'wall' ? steps.map((s) => NOW() / 1e6 - 1400 + s) : steps
  const y = steps.map((s) => value(key, s))
  return {
    run: ask.runs[0], key, x, last: y, mean: y, points: bucketed ? 140_000 : y.length, bucketed,
    min: bucketed ? y.map((v) => v - 0.15) : y, max: bucketed ? y.map((v) => v + 0.2) : y, count: y.map(() => (bucketed ? 100 : 1)),
  } // biome-ignore format: made-up data
}

const TEXT = [
  'step {n} loss 2.31 lr 0.0003',
  'saved checkpoint ckpt-{n}',
  'warning: gradient norm 4.2 is clipped',
  '数据分片 {n} 已载入',
  'epoch 1 ▕████████▏ 62%',
]
const LINES = Array.from({ length: 5200 }, (_, i) => ({
  id: String(i).padStart(8, '0'), time_us: NOW() - (5200 - i) * 300_000, attempt: 1, rank: i % 2, stream: i % 50 === 0 ? 'trackbed' : 'stdout',
  level: i === 4100 ? 'error' : i % 97 === 2 ? 'warning' : 'info',
  text: i === 4100 ? 'RuntimeError: CUDA out of memory (not really)' : i === 5000 ? 'x'.repeat(9000) : TEXT[i % TEXT.length].replace('{n}', i),
})) // biome-ignore format: made-up data

function detail(one) {
  return {
    run: one,
    spec: {
      project: 'demo', params: { lr: 0.0003, width: 256, layers: 6, heads: 8, batch: 32, note: '含中文的参数', long: 'y'.repeat(3000) },
      data: { corpus: { ref: 'stdlib@latest', dataset: 'stdlib', version: 3, digest: digest(3), size_bytes: 31_457_280 } },
      recipe: 'pretrain', seed: 17, resources: { cards_per_node: one.cards, nodes: 1 }, env: { OMP_NUM_THREADS: '4' },
    },
    tree: { digest: digest(5), commit: '9f69a24c0ffee9f69a24c0ffee9f69a24c0ffee9', branch: 'main', remote: 'git@example.org:lab/demo.git', dirty: 2, untracked: 1, ignored: 14, files: 61, size_bytes: 812_000, patch: 'diff --git a/train.py b/train.py\nindex 1..2 100644\n--- a/train.py\n+++ b/train.py\n@@ -10,7 +10,8 @@ def main():\n     model = build()\n-    lr = 1e-3\n+    lr = 3e-4\n+    warmup = 100\n     train(model)\n' },
    environment: { digest: digest(8), kind: 'current', python: 'CPython 3.11.7', platform: 'linux-x86_64', executable: '/venv/bin/python', packages: ['numpy', 'torch', 'safetensors', 'msgspec', 'blake3', 'httpx'].map((name, i) => [name, `2.${i}.1`, digest(i)]) },
    attempts: Array.from({ length: one.attempt }, (_, i) => ({
      id: `att_${i}`, number: i + 1, epoch: i + 1, state: i + 1 < one.attempt || one.ended_us ? 'exited' : 'running', cause: i + 1 < one.attempt ? 'killed' : one.cause,
      placement: [{ node: 'local', cards: [0, 1], ranks: [0, 1] }], created_us: one.created_us + i * 4 * MIN, started_us: one.created_us + MIN + i * 4 * MIN,
      ended_us: i + 1 < one.attempt ? one.created_us + 4.6 * MIN + i * 4 * MIN : one.ended_us, card_seconds: 400, ...(i ? { resumed_from_step: i * 400, lost_steps: 12 } : {}),
      evidence: one.state === 'failed' ? { exit_code: 1, rank: 0, last_lines: ['Traceback (most recent call last):', '  File "train.py", line 40, in <module>', 'ValueError: shapes (3,4) and (5,6) not aligned'] } : {},
    })),
    stages: [{ name: 'train', state: 'done', products: { model: digest(11) }, attempt: 1 }, { name: 'eval', state: 'running', attempt: 1 }],
    checkpoints: [400, 800, 1200].map((step, i) => ({ step, name: `step-${step}`, digest: digest(step), size_bytes: 9_400_000, attempt: 1, state: i === 2 ? 'current' : 'durable', created_us: NOW() - (3 - i) * 3 * MIN })),
    artifacts: [], summary: { best_loss: 2.213 }, metric_keys: KEYS, models: ['stdlib-gpt@1'],
  } // biome-ignore format: made-up data
}

const ARTIFACTS = [
  { path: 'model/model.safetensors', kind: 'model', size_bytes: 9_400_000, file_digest: 'a', attempt: 1 },
  { path: 'report.md', kind: 'report', size_bytes: 420, file_digest: 'b', attempt: 1 },
  { path: 'samples/sample-1400.txt', kind: 'sample', size_bytes: 300, file_digest: 'c', attempt: 1 },
] // biome-ignore format: made-up data

const EVENTS = ['run.submitted', 'run.queued', 'attempt.assigned', 'run.started', 'checkpoint.durable', 'run.finished']

function answer(method, path, query, body) {
  const one = ALL.find((r) => path.startsWith(`/runs/${r.id}`)) ?? ALL[0]
  if (path === '/me') return { id: 'per_1', name: 'admin', admin: true, roles: { default: 'maintainer' }, csrf: 'x' }
  if (path === '/status') return { version: '0.1.0', url: 'http://127.0.0.1:8470', started_us: NOW() - 400 * MIN, counts: { running: 54, queued: 53, finished: 212 }, cards_total: 8, cards_held: 5, lane_wait_p99_ms: 3.2 }
  if (path === '/projects') return [{ name: 'demo', space: 'default', runs: 640 }, { name: 'vision', space: 'default', runs: 3 }]
  if (path === '/runs' && method === 'GET') {
    if (query.get('filter')?.includes('!!')) return { problem: { status: 400, code: 'not_found', params: { what: '!!' } } }
    const state = /state = '(\w+)'/.exec(query.get('filter') ?? '')?.[1]
    const list = state ? ALL.filter((r) => r.state === state) : ALL
    const at = Number(query.get('cursor') || 0)
    const limit = Number(query.get('limit') || 100)
    return { runs: list.slice(at, at + limit), next: at + limit < list.length ? String(at + limit) : '', total: list.length }
  }
  if (path.endsWith('/keys')) return { keys: KEYS.map((key) => ({ key, count: 1401, non_finite: key.includes('grad') ? 3 : 0, first: 5.5, last: value(key, 1400), last_step: 1400, min: 2.03, max: 5.6, argmin: 1390, argmax: 1, definition: key === 'eval/loss' ? { goal: 'min', unit: 'nats/byte' } : {} })), total: KEYS.length }
  if (path === '/series') return { series: body.keys.flatMap((key) => [series(body, key)]) }
  if (path.endsWith('/events')) return EVENTS.map((kind, id) => ({ id, time_us: one.created_us + id * MIN, kind, actor: id ? 'system' : 'admin', subject: one.id, data: id === 3 ? { from: 'starting', to: 'running' } : {} }))
  if (path.endsWith('/logs')) {
    const level = query.get('level')
    const grep = query.get('grep')
    let list = LINES.filter((l) => (!level || l.level === level) && (!grep || l.text.includes(grep)) && (!query.get('rank') || String(l.rank) === query.get('rank')))
    const last = Number(query.get('tail') || query.get('limit') || 1000)
    if (query.get('before')) list = list.filter((l) => l.id < query.get('before'))
    const previous = list.length > last ? list.at(-last).id : ''
    if (query.get('before') || query.get('tail')) return { lines: list.slice(-last), next: list.at(-1)?.id ?? '', more: Boolean(previous) && query.has('before'), previous }
    list = list.filter((l) => l.id > (query.get('after') ?? '')).slice(0, Number(query.get('limit') || 1000))
    return { lines: list, next: list.at(-1)?.id ?? query.get('after') ?? '', more: false }
  }
  if (path.endsWith('/artifacts')) return ARTIFACTS
  if (path.endsWith('/content')) return { text: '# Report\n\nloss 2.21 nats per byte\n' }
  if (path.endsWith('/lineage')) {
    const r = `run:${one.id}`
    return { root: r, nodes: { [r]: { label: one.ref }, 'data:stdlib@3': { label: 'stdlib@3', digest: digest(3), created_us: NOW() - 900 * MIN }, 'model:stdlib-gpt@1': { label: 'stdlib-gpt@1', digest: digest(11), created_us: NOW() } }, edges: [{ source: 'data:stdlib@3', target: r, kind: 'used' }, { source: `tree:${digest(5)}`, target: r, kind: 'used' }, { source: r, target: 'model:stdlib-gpt@1', kind: 'registered' }] }
  }
  if (path.startsWith('/trees/')) return { digest: digest(5), files: 3, size_bytes: 12000, entries: [{ path: 'train.py', type: 'file', size_bytes: 2100 }, { path: 'src/model/attention.py', type: 'file', size_bytes: 8100 }, { path: 'data', type: 'link', target: '/data' }] }
  if (path === '/nodes') return ['h-01', 'h-02'].map((name, n) => ({ name, state: n ? 'suspect' : 'ready', contact_us: NOW() - 3e6, cards: [0, 1, 2, 3].map((i) => ({ index: i, kind: 'cpu', memory_bytes: 0, state: ['held', 'held', 'free', 'unknown'][i], run: i === 0 ? 'demo#900' : '', run_id: ALL[0].id })) }))
  if (path === '/queue') return ALL.filter((r) => r.state === 'queued').slice(0, 6).map((r, i) => ({ place: i + 1, run: r, reason: r.reason }))
  if (path.startsWith('/datasets')) {
    const data = { name: 'stdlib', space: 'default', latest: 3, versions: [1, 2, 3].map((version) => ({ dataset: 'stdlib', version, digest: digest(version), files: 180, size_bytes: 31e6, message: version === 3 ? 'more files' : '', created_us: NOW() - (4 - version) * 300 * MIN, created_by: 'admin' })) }
    return path === '/datasets' ? [data] : data
  }
  if (path.startsWith('/models')) {
    const data = { name: 'stdlib-gpt', space: 'default', latest: 1, aliases: { champion: 1 }, versions: [{ model: 'stdlib-gpt', version: 1, digest: digest(11), size_bytes: 9.4e6, run_id: ALL[1].id, run_ref: ALL[1].ref, aliases: ['champion'], created_us: NOW() - 30 * MIN, created_by: 'admin', provenance: { run: ALL[1].id, attempt: 1, seed: 17, tree: digest(5), params: {}, recipe: 'pretrain', data: { corpus: { dataset: 'stdlib', version: 3, digest: digest(3) } }, from: null, checkpoint: [{ stage: 'train', name: 'step-2000', step: 2000, digest: digest(7) }], metrics: { 'eval/loss': 2.21 } } }] }
    return path === '/models' ? [data] : data
  }
  if (path === '/tokens') return [{ id: 'tok_1', label: 'laptop', created_us: NOW() - 900 * MIN, last_used_us: NOW() - MIN, expires_us: NOW() + 90 * 1440 * MIN }]
  if (method !== 'GET' && path.startsWith('/runs/')) return one
  return detail(one)
} // biome-ignore format: a table of answers

export function mock() {
  return {
    name: 'trackbed-mock',
    configureServer(server) {
      server.middlewares.use('/api/v1', (request, reply) => {
        const at = new URL(request.url, 'http://mock')
        if (at.pathname === '/stream') {
          reply.writeHead(200, { 'Content-Type': 'text/event-stream' })
          reply.write(': hello\n\n')
          return
        }
        let text = ''
        request.on('data', (part) => {
          text += part
        })
        request.on('end', () => {
          const found = answer(
            request.method,
            decodeURIComponent(at.pathname),
            at.searchParams,
            text ? JSON.parse(text) : {},
          )
          if (found.problem) reply.writeHead(found.problem.status, { 'Content-Type': 'application/problem+json' })
          reply.end(found.problem ? JSON.stringify(found.problem) : (found.text ?? JSON.stringify(found)))
        })
      })
    },
  }
}
