// Made by web/scripts/wire_types.py from trackbed.wire. Do not edit.

export interface LoginRequest {
  code: string
}

export interface Me {
  id: string
  name: string
  admin?: boolean
  roles?: Record<string, string>
  csrf?: string
}

export interface TokenRequest {
  label?: string
  expires_s?: number | null
  person?: string
}

export interface TokenView {
  id: string
  label?: string
  person?: string
  created_us?: number
  expires_us?: number
  last_used_us?: number
  revoked?: boolean
  secret?: string
}

export interface PersonRequest {
  name: string
  admin?: boolean
}

export interface PersonView {
  id: string
  name: string
  admin?: boolean
  disabled?: boolean
  login_url?: string
}

export interface SpaceRequest {
  name: string
  accept_one_trust_domain?: boolean
}

export interface SpaceView {
  id: string
  name: string
  role?: string
  members?: Record<string, string>
}

export interface RoleRequest {
  person: string
  role: string
}

export interface NamingRequest {
  space?: string
  name?: string
  tags?: string[]
  expected?: number | null
}

export interface NamingView {
  name?: string
  tags?: string[]
  example?: string
  tag_examples?: string[]
  version?: number
}

export interface ProjectView {
  name: string
  space: string
  runs?: number
  created_us?: number
  aliases?: string[]
  naming?: NamingView | null
}

export interface NodeSlot {
  node: string
  address?: string
  cards?: number[]
  card_kind?: string
}

export interface ResumePin {
  name: string
  step: number
  digest: string
}

export interface LeaseSettings {
  heartbeat_s?: number
  lease_s?: number
  orphan_limit_s?: number
  fencing?: 'relaxed' | 'strict'
}

export interface Assignment {
  protocol?: number
  attempt_id: string
  number: number
  epoch: number
  run_id: string
  run_ref: string
  project: string
  project_id?: string
  run_name?: string
  space?: string
  owner?: string
  server_url?: string
  token?: string
  node_rank?: number
  nodes?: NodeSlot[]
  store_url?: string
  stage?: Stage | null
  inputs?: Record<string, string>
  command?: string
  recipe?: string
  launcher?: string
  cpus_per_card?: number
  env?: Record<string, string>
  params?: Record<string, unknown>
  seed?: number
  determinism?: string
  tree?: string
  environment?: Record<string, unknown>
  pack?: string
  environment_drift?: 'flag' | 'refuse'
  data?: Record<string, DataPin>
  from?: FromPin | null
  resume?: ResumePin | null
  checkpoint?: CheckpointPolicy
  on_preempt?: OnPreempt
  hang?: Hang
  on_rank_loss?: string
  time_limit_s?: number | null
  trial_steps?: number
  lease?: LeaseSettings
}

export interface Order {
  id: string
  kind: string
  grace_s?: number
  reason?: string
  withdrawn?: boolean
}

export interface RankReport {
  rank: number
  pid?: number
  state?: 'exited' | 'running' | 'starting'
  exit_code?: number | null
  signal?: number | null
}

export interface LeaseRequest {
  epoch: number
  node: string
  node_rank?: number
  boot_id?: string
  phase?: 'ended' | 'running' | 'saving' | 'starting'
  ranks?: RankReport[]
  backlog_bytes?: number
  order_seen?: string
  environment?: EnvironmentFound | null
  wait_s?: number
}

export interface LeaseReply {
  verdict?: 'held' | 'superseded'
  lease_s?: number
  order?: Order | null
}

export interface CheckpointReport {
  epoch: number
  name: string
  step: number
  digest: string
  size_bytes?: number
  stage?: string
  created_us?: number
}

export interface InputFetch {
  name: string
  size_bytes?: number
  fetched_bytes?: number
  seconds?: number
}

export interface InputsReport {
  epoch: number
  node_rank?: number
  inputs?: InputFetch[]
}

export interface OutputEntry {
  path: string
  size_bytes: number
  file_digest: string
  kind?: string
}

export interface OutputsReport {
  epoch: number
  digest?: string
  entries?: OutputEntry[]
  products?: Record<string, string>
  partial?: boolean
}

export interface ExitReport {
  epoch: number
  cause: string
  evidence?: Record<string, unknown>
  ranks?: RankReport[]
  started_us?: number
  ended_us?: number
  stop_step?: number | null
  lost_to_step?: number | null
  salvaged?: boolean
}

export interface AttemptRecord {
  number: number
  cause?: string
  stage?: string
  evidence_json?: string
  placement_json?: string
  cards?: number
  node?: string
  created_us?: number
  started_us?: number
  ended_us?: number
  card_seconds?: number
  resumed_from_step?: number | null
  last_step?: number | null
}

export interface FileRecord {
  path: string
  kind?: string
  size_bytes?: number
  file_digest: string
  attempt?: number
  created_us?: number
}

export interface RunRecord {
  id: string
  ref: string
  space: string
  project: string
  name?: string
  description?: string
  owner?: string
  state: string
  cause?: string
  reason_json?: string
  tags?: string[]
  spec_json?: string
  tree_json?: string
  tree_digest?: string
  environment_json?: string
  environment_digest?: string
  nondeterminism_json?: string
  summary_json?: string
  params?: Record<string, string>
  definitions?: Record<string, Record<string, unknown>>
  attempts?: AttemptRecord[]
  files?: FileRecord[]
  checkpoints?: Record<string, unknown>[]
  mlflow_tags?: Record<string, string>
  origin?: Record<string, string>
  created_us?: number
  queued_us?: number
  started_us?: number
  ended_us?: number
  card_seconds?: number
  step?: number
  points?: number
  lines?: number
}

export interface OriginView {
  installation: string
  id: string
  ref: string
  owner?: string
  bundle?: string
  imported_us?: number
  imported_by?: string
}

export interface ImportedRun {
  id: string
  ref: string
  original_id: string
  original_ref: string
  points?: number
  lines?: number
  files?: number
  known?: boolean
}

export interface ImportReply {
  bundle: string
  installation: string
  runs?: ImportedRun[]
}

export type DiffLine = [op: ' ' | '+' | '-' | '@', before?: number, after?: number, text?: string, commit?: string, author?: string, time_us?: number, run?: string]

export interface FileDiff {
  path: string
  change: 'added' | 'changed' | 'mode' | 'moved' | 'removed'
  path_before?: string
  digest_before?: string
  digest_after?: string
  size_before?: number
  size_after?: number
  unshown?: '' | 'binary' | 'later' | 'long'
  added?: number
  removed?: number
  lines?: DiffLine[]
}

export interface CodeDiff {
  before: string
  after: string
  digest_before?: string
  digest_after?: string
  same?: boolean
  added?: number
  removed?: number
  files?: FileDiff[]
}

export interface CompareRequest {
  runs: string[]
  metrics?: string[]
}

export interface ComparedRun {
  id: string
  ref: string
  name?: string
  state?: string
  owner?: string
  seed?: number
  group?: number
  created_us?: number
  seconds?: number
  card_seconds?: number
  cards?: number
}

export interface Difference {
  name: string
  values: unknown[]
}

export interface Compared {
  last: number | string
  best?: number | string | null
  best_step?: number | null
  last_step?: number
}

export interface MetricColumn {
  key: string
  goal?: string
  unit?: string
  runs: (Compared | null)[]
  groups?: Spread[]
}

export interface Spread {
  group: number
  n: number
  mean?: number | null
  deviation?: number | null
  verdict?: string
}

export interface Comparison {
  runs: ComparedRun[]
  params?: Difference[]
  data?: Difference[]
  code?: Difference[]
  files?: Difference[]
  files_left_out?: number
  environment?: Difference[]
  settings?: Difference[]
  metrics?: MetricColumn[]
  metrics_left_out?: number
  matched?: string[]
  groups?: number
}

export interface GroupComparison {
  tag: string
  project: string
  made_us: number
  comparison: Comparison
}

export interface OpenWork {
  owner: string
  branch?: string
  repository?: string
  run?: string
  review?: string
  time_us?: number
}

export interface Conflict {
  kind: 'alias' | 'path' | 'quota' | 'template'
  subject: string
  works: OpenWork[]
  lines?: boolean
}

export interface ListingEntry {
  path?: string
  path_hex?: string
  type?: 'dir' | 'file' | 'link'
  executable?: boolean
  size_bytes?: number
  file_digest?: string
  target?: string
}

export interface TreeView {
  digest: string
  files: number
  size_bytes: number
  entries?: ListingEntry[]
  next?: string
}

export interface CommitTree {
  listing: string
}

export interface HasRequest {
  file_digests: string[]
}

export interface HasReply {
  missing: string[]
}

export interface DatasetCommit {
  digest: string
  kind?: 'file' | 'folder'
  message?: string
  space?: string
}

export interface DatasetVersionView {
  dataset: string
  version: number
  digest: string
  kind?: string
  files?: number
  size_bytes?: number
  message?: string
  created_us?: number
  created_by?: string
  space?: string
  unchanged?: boolean
}

export interface DatasetView {
  name: string
  space: string
  latest: number
  versions?: DatasetVersionView[]
}

export interface ModelVersionView {
  model: string
  version: number
  digest: string
  size_bytes?: number
  space?: string
  run_id?: string
  run_ref?: string
  aliases?: string[]
  created_us?: number
  created_by?: string
  provenance?: Record<string, unknown>
  warnings?: Reason[]
}

export interface ModelView {
  name: string
  space: string
  latest: number
  aliases?: Record<string, number>
  versions?: ModelVersionView[]
  warnings?: Reason[]
}

export interface RegisterRequest {
  run: string
  path?: string
}

export interface AliasRequest {
  version: number
  expected?: number | null
}

export interface LineageEdge {
  source: string
  target: string
  kind: string
}

export interface LineageView {
  root: string
  nodes?: Record<string, Record<string, unknown>>
  edges?: LineageEdge[]
}

export interface Document {
  path: string
  size_bytes?: number
}

export interface DocumentCommand {
  line: number
  text: string
}

export interface DocumentView {
  path: string
  text?: string
  size_bytes?: number
  cut_bytes?: number
  commands?: DocumentCommand[]
}

export interface NodeCheck {
  node: string
  check: string
  verdict: 'bad' | 'ok' | 'warn'
  value?: number
  unit?: string
  params?: Record<string, unknown>
  time_us?: number
}

export interface PackView {
  environment: string
  platform: string
  state: 'building' | 'failed' | 'ready' | 'wanted'
  python?: string
  tree?: string
  size_bytes?: number
  reason?: Reason | null
  notes?: string[]
  log?: string
  waiting?: number
  created_us?: number
  ended_us?: number
}

export interface EnvironmentName {
  name: string
  space: string
  digest: string
  run?: string
  version?: number
  set_by?: string
  set_us?: number
}

export interface NameRequest {
  run?: string
  environment?: EnvironmentRecord | null
  surroundings?: Surroundings | null
  space?: string
  expected?: number | null
}

export interface EnvironmentView {
  digest: string
  kind?: string
  python?: string
  platform?: string
  packages?: number
  runs?: number
  created_us?: number
  names?: string[]
  packs?: PackView[]
  record?: EnvironmentRecord | null
}

export interface EnvironmentFacts {
  label?: string
  environment?: EnvironmentRecord | null
  surroundings?: Surroundings | null
  drift?: string[]
}

export interface Difference {
  area: 'cuda' | 'device' | 'driver' | 'os' | 'package' | 'platform' | 'python' | 'variable'
  name: string
  before?: string
  after?: string
}

export interface EnvironmentDiff {
  before: string
  after: string
  differences?: Difference[]
  unknown?: string[]
}

export interface Anomaly {
  kind: string
  key?: string
  number?: number
  open?: boolean
  rank?: number
  first_step?: number
  last_step?: number
  count?: number
  value?: number | string
  worst?: number | string
  expected?: number | string | null
  opened_us?: number
  closed_us?: number
  waits_for?: string
}

export interface AnomaliesReply {
  anomalies: Anomaly[]
  watched?: string[]
}

export interface SlowStep {
  step: number
  attempt: number
  time_us: number
  seconds: number
  median_s: number
  split?: Record<string, number>
  cause?: string
  straggler?: number | null
  straggler_s?: number
}

export interface RankWork {
  rank: number
  step: number
  work_s: number
}

export interface StepsReply {
  steps?: number
  median_s?: number | null
  split?: Record<string, number>
  slow?: SlowStep[]
  slow_total?: number
  ranks?: RankWork[]
}

export interface MetricTag {
  tag: string
  keys: string[]
  runs: number
}

export interface TaggedValue {
  run: string
  ref: string
  name?: string
  state?: string
  created_us?: number
  key: string
  goal?: string
  unit?: string
  last?: number | string
  best?: number | null
  data?: Record<string, string>
  version?: number
}

export interface FaultView {
  code: string
  field?: string
  line?: number | null
  params?: Record<string, unknown>
}

export interface Problem {
  type: string
  status: number
  code: string
  params?: Record<string, unknown>
  faults?: FaultView[]
}

export interface Reason {
  code: string
  params?: Record<string, unknown>
}

export interface ProtectionRequest {
  kind: 'alias' | 'path' | 'quota' | 'template'
  pattern: string
  space?: string
  approvals?: number
  approvers?: string[]
  version?: number
}

export interface ProtectionView {
  kind: 'alias' | 'path' | 'quota' | 'template'
  pattern: string
  space?: string
  approvals?: number
  approvers?: string[]
  version?: number
  created_us?: number
  created_by?: string
}

export interface ReviewItem {
  kind: 'alias' | 'path' | 'quota' | 'template'
  subject: string
  digest: string
}

export interface ReviewRequest {
  items: ReviewItem[]
  title?: string
  description?: string
  space?: string
  commit?: string
  branch?: string
  remote?: string
  tree?: string
}

export interface ReviewWord {
  person: string
  decision: 'approve' | 'comment' | 'reject' | 'withdraw'
  text?: string
  digest?: string
  time_us?: number
}

export interface WordRequest {
  digest: string
  text?: string
}

export interface ReviewView {
  id: string
  state: 'approved' | 'open' | 'rejected' | 'withdrawn'
  title: string
  description?: string
  space?: string
  author?: string
  commit?: string
  branch?: string
  remote?: string
  digest?: string
  tree?: string
  items?: ReviewItem[]
  words?: ReviewWord[]
  needed?: number
  approvers?: string[]
  created_us?: number
  updated_us?: number
  files?: FileDiff[]
}

export interface CheckRequest {
  items: ReviewItem[]
  space?: string
  commit?: string
}

export interface CheckReply {
  missing?: ReviewItem[]
  protections?: ProtectionView[]
  reviews?: ReviewView[]
  open?: ReviewView[]
}

export interface CommitFacts {
  id: string
  author?: string
  time_us?: number
  subject?: string
}

export interface TreeFacts {
  digest: string
  commit?: string
  branch?: string
  remote?: string
  dirty?: number
  untracked?: number
  ignored?: number
  files?: number
  size_bytes?: number
  patch?: string
  patch_cut_bytes?: number
  nested?: string[]
  name?: string
  ignored_paths?: string[]
  ignored_more?: number
  missing_submodules?: string[]
  lfs_pointers?: string[]
  unpushed?: string[]
  unpushed_count?: number
  blame?: Record<string, [number, number, number][]>
  base?: string
  touched?: Record<string, [number, number][]>
  commits?: CommitFacts[]
  repositories?: TreeFacts[]
}

export type Package = [name: string, version: string, digest?: string, source?: string]

export interface EnvironmentRecord {
  digest?: string
  kind?: string
  python?: string
  platform?: string
  executable?: string
  packages?: Package[]
  lock?: string
  image?: string
  modified?: string[]
}

export interface SubmitRequest {
  spec: Spec
  tree?: TreeFacts | null
  environment?: EnvironmentRecord | null
  dry_run?: boolean
  reproduces?: string
  values?: Record<string, unknown>
  set_fields?: string[]
  like?: string
  trial?: TrialRequest | null
}

export interface ResolvedValue {
  field: string
  value?: unknown
  origin?: 'default' | 'file' | 'set' | 'template'
}

export interface SubmittedRun {
  run_id?: string
  ref?: string
  url?: string
  values?: Record<string, unknown>
}

export interface Estimate {
  starts_now?: boolean
  reason?: Reason | null
  ahead?: number
  not_before_s?: number | null
  card_hours_most?: number | null
  card_hours_like?: number | null
  seconds_like?: number | null
  like?: number
  cost_most?: number | null
  cost_like?: number | null
  currency?: string
}

export interface SubmitReply {
  run_id?: string
  ref?: string
  url?: string
  spec: Spec
  warnings?: Reason[]
  runs?: SubmittedRun[]
  group?: string
  resolved?: ResolvedValue[]
  estimate?: Estimate | null
  commits_before?: string[]
  trial_id?: string
  trial_ref?: string
}

export interface AttemptView {
  id: string
  number: number
  epoch: number
  state: string
  stage?: string
  cause?: string
  reason?: Reason | null
  evidence?: Record<string, unknown>
  placement?: Record<string, unknown>[]
  created_us?: number
  started_us?: number
  ended_us?: number
  card_seconds?: number
  inputs?: InputFetch[]
  resumed_from_step?: number | null
  lost_steps?: number
  contact_us?: number
}

export interface StageView {
  name: string
  state?: 'done' | 'failed' | 'running' | 'waiting'
  products?: Record<string, string>
  attempt?: number
  needs?: string[]
  cache?: '' | 'hit' | 'miss' | 'off'
  reason?: Reason | null
  key?: string
  from_run?: string
  run?: string
  run_id?: string
}

export interface Progress {
  step?: number
  steps_total?: number
  seconds_left?: number | null
  updated_us?: number
}

export interface RunView {
  id: string
  ref: string
  number: number
  project: string
  space: string
  name?: string
  description?: string
  state: string
  cause?: string
  reason?: Reason | null
  owner?: string
  tags?: string[]
  priority?: string
  cards?: number
  outside?: boolean
  created_us?: number
  queued_us?: number
  started_us?: number
  ended_us?: number
  contact_us?: number
  attempt?: number
  card_seconds?: number
  progress?: Progress | null
  version?: number
  marks?: string[]
  metrics?: Record<string, number | string>
  params?: Record<string, unknown>
}

export interface CheckpointView {
  step: number
  name: string
  digest?: string
  size_bytes?: number
  attempt?: number
  state?: 'current' | 'dropped' | 'durable' | 'staged'
  created_us?: number
}

export interface ArtifactView {
  path: string
  kind: string
  size_bytes: number
  file_digest: string
  attempt?: number
  created_us?: number
}

export interface FieldChange {
  field: string
  before?: unknown
  after?: unknown
}

export interface LikeView {
  run_id: string
  ref: string
  kind?: 'clone' | 'fork'
  changes?: FieldChange[]
}

export interface CloneView {
  request: SubmitRequest
  text?: string
}

export interface RunDetail {
  run: RunView
  spec: Spec
  tree?: TreeFacts | null
  environment?: EnvironmentRecord | null
  attempts?: AttemptView[]
  stages?: StageView[]
  checkpoints?: CheckpointView[]
  checkpoints_dropped?: CheckpointView[]
  artifacts?: ArtifactView[]
  summary?: Record<string, unknown>
  metric_keys?: string[]
  models?: string[]
  reproduces?: string
  nondeterminism?: string[]
  like?: LikeView | null
  anomalies?: Anomaly[]
  trial?: TrialView | null
  origin?: OriginView | null
}

export interface RunPage {
  runs: RunView[]
  next?: string
  total?: number
}

export interface EventView {
  id: number
  time_us: number
  kind: string
  actor: string
  subject: string
  run_id?: string
  attempt?: string
  data?: Record<string, unknown>
}

export interface MetricDifference {
  key: string
  step: number
  before: string
  after: string
}

export interface Unequal {
  what: string
  name: string
  before?: string
  after?: string
}

export interface ReproductionVerdict {
  run: string
  reproduces: string
  equal?: boolean
  verdict?: 'differs' | 'equal' | 'nothing' | 'within'
  finished?: boolean
  keys?: string[]
  first?: MetricDifference | null
  greatest?: number
  tolerance?: number
  products?: number
  outputs?: number
  unequal?: Unequal[]
  why?: Reason[]
  nondeterminism?: string[]
}

export interface VerbRequest {
  grace_s?: number | null
  message?: string
}

export interface OutsideRunRequest {
  project?: string
  name?: string
  tags?: string[]
  params?: Record<string, unknown>
  key?: string
  started_us?: number
}

export interface NodeView {
  name: string
  state: string
  cards?: Record<string, unknown>[]
  contact_us?: number
}

export interface QueueEntry {
  place: number
  run: RunView
  reason: Reason
}

export interface StatusView {
  version: string
  url?: string
  started_us?: number
  one_trust_domain?: boolean
  counts?: Record<string, number>
  cards_total?: number
  cards_held?: number
  platforms?: string[]
  lane_wait_p99_ms?: number
  warnings?: Reason[]
}

export interface Rejected {
  client: string
  sequence: number
  item?: string
  code: string
  params?: Record<string, unknown>
}

export interface FramesReceipt {
  frames?: number
  duplicates?: number
  points?: number
  lines?: number
  rejected?: Rejected[]
  watermarks?: Record<string, number>
}

export interface SeriesQuery {
  runs: string[]
  keys: string[]
  x?: string
  from?: number | null
  to?: number | null
  buckets?: number
  all_attempts?: boolean
  streams?: boolean
  since?: Record<string, string>
}

export interface Series {
  run: string
  key: string
  stream?: string
  x?: number[]
  last?: (number | string)[]
  mean?: (number | string)[]
  min?: (number | string)[]
  max?: (number | string)[]
  count?: number[]
  points?: number
  bucketed?: boolean
  non_finite?: number[]
  at?: number[]
  appended?: boolean
}

export interface Grid {
  start: number
  width: number
  buckets: number
}

export interface SeriesReply {
  series: Series[]
  grid?: Grid | null
  cursors?: Record<string, string>
}

export type Point = [step: number, time_us: number, value: number | string, attempt?: number, incarnation?: number, rank?: number]

export interface HistoryReply {
  key: string
  points: Point[]
  next?: string
}

export interface KeyInfo {
  key: string
  count?: number
  non_finite?: number
  first?: number | string
  last?: number | string
  last_step?: number
  min?: number | string | null
  max?: number | string | null
  argmin?: number | null
  argmax?: number | null
  definition?: Record<string, unknown>
}

export interface KeysReply {
  keys: KeyInfo[]
  total?: number
}

export interface LogLine {
  id: string
  time_us: number
  attempt: number
  rank: number
  stream: string
  level: string
  text: string
  raw?: string
}

export interface LogPage {
  lines: LogLine[]
  next?: string
  more?: boolean
  previous?: string
  trimmed?: Record<string, number>
}

export interface Resources {
  cards_per_node?: number
  nodes?: number
  kind?: string
  card_memory_bytes?: number
  cpus_per_card?: number
  ram_per_card_bytes?: number
  shm_bytes?: number
  only?: string[]
  not?: string[]
  time_limit_s?: number | null
}

export interface Keep {
  last?: number
  best?: number
  by?: string
  goal?: '' | 'max' | 'min'
}

export interface CheckpointPolicy {
  every_steps?: number | null
  every_s?: number | null
  every_epoch?: boolean
  keep?: Keep | null
  upload_every?: number
}

export interface OnPreempt {
  signal?: string
  grace_s?: number
}

export interface Hang {
  after_s?: number | null
  end?: boolean
}

export interface DataPin {
  ref: string
  dataset?: string
  version?: number
  digest?: string
  kind?: 'file' | 'folder'
  size_bytes?: number
  slice_of?: string
}

export interface FromPin {
  kind: 'checkpoint' | 'model'
  ref: string
  digest?: string
  state?: 'all' | 'weights'
  run_id?: string
  step?: number
}

export interface RegisterRule {
  model: string
  when?: string
  path?: string
}

export interface Uses {
  files?: string[] | null
  data?: string[] | null
  params?: string[] | null
  tree?: string
}

export interface Stage {
  name: string
  run?: string
  recipe?: string
  suite?: string
  needs?: string[]
  inputs?: Record<string, string>
  produces?: Record<string, string>
  params?: Record<string, unknown>
  resources?: Resources | null
  launcher?: 'none' | 'process_per_node' | 'rank_per_card' | null
  uses?: Uses | null
}

export interface CodePart {
  path: string
  name?: string
  include?: string[]
}

export interface Trial {
  steps?: number
  full_steps?: number
}

export interface Spec {
  version?: number
  project?: string
  space?: string
  name?: string
  description?: string
  tags?: string[]
  template?: string
  data?: Record<string, DataPin>
  from?: FromPin | null
  code?: string | CodePart[]
  environment?: string
  seed?: number
  determinism?: 'exact' | 'recorded'
  params?: Record<string, unknown>
  resources?: Resources
  priority?: 'high' | 'idle' | 'low' | 'normal' | 'urgent'
  env?: Record<string, string>
  run?: string
  recipe?: string
  stages?: Stage[]
  launcher?: 'none' | 'process_per_node' | 'rank_per_card'
  checkpoint?: CheckpointPolicy
  on_preempt?: OnPreempt
  hang?: Hang
  on_rank_loss?: 'end'
  fencing?: 'relaxed' | 'strict'
  orphan_limit_s?: number
  retries?: Record<string, number>
  register?: RegisterRule | null
  cache?: boolean
  matrix?: Record<string, unknown[]>
  trial?: Trial | null
}

export interface S3Grant {
  key_id: string
  secret: string
  token?: string
}

export interface StoreGrant {
  url: string
  store_id?: string
  secrets?: Record<string, string>
  s3?: S3Grant | null
  expires_s?: number
  rate?: number
}

export interface BrokenView {
  what: string
  code: string
  why: string
}

export interface VerifyRequest {
  share?: number
}

export interface VerifyReply {
  clean: boolean
  trees?: number
  files?: number
  packs?: number
  frames?: number
  frames_read?: number
  bytes_stored?: number
  bytes_read?: number
  index_sound?: boolean
  index_lags?: number
  broken?: BrokenView[]
  quarantined?: string[]
  frames_saved?: number
  frames_lost?: number
  broken_trees?: BrokenView[]
}

export interface CollectRequest {
  dry_run?: boolean
  grace_s?: number
  compact?: boolean
}

export interface CollectReply {
  dry_run: boolean
  trees?: number
  trees_marked?: number
  trees_dropped?: number
  trees_lifted?: number
  packs?: number
  bytes_stored?: number
  bytes_reached?: number
  packs_marked?: number
  packs_swept?: number
  packs_lifted?: number
  packs_compacted?: number
  bytes_marked?: number
  bytes_freed?: number
}

export interface StoreSettings {
  gc_every_s?: number
  gc_grace_s?: number
  gc_dry_run?: boolean
  low_water_h?: number
  capacity_bytes?: number
}

export interface GcState {
  last_us?: number
  seconds?: number
  report?: CollectReply | null
  failed?: string
  why?: string
  next_us?: number
}

export interface StoreView {
  url: string
  sealed?: boolean
  settings?: StoreSettings
  gc?: GcState
  measured_us?: number
  stored_bytes?: number
  free_bytes?: number | null
  total_bytes?: number | null
  growth_bytes_per_h?: number | null
  hours_left?: number | null
  low?: boolean
  low_since_us?: number
  checkpoints_to_free?: number
  bytes_to_free?: number
}

export interface Surroundings {
  os?: string
  kernel?: string
  libc?: string
  driver?: string
  cuda?: string
  devices?: string[]
  variables?: Record<string, string>
}

export interface EnvironmentFound {
  surroundings: Surroundings
  python?: string
  drift?: string[]
}

export interface ColumnInfo {
  name: string
  runs?: number
}

export interface ColumnsReply {
  metrics?: ColumnInfo[]
  params?: ColumnInfo[]
  tags?: ColumnInfo[]
  total?: Record<string, number>
  looked?: number
}

export interface GroupSpread {
  count?: number
  mean?: number | string | null
  std?: number | string | null
  min?: number | string | null
  max?: number | string | null
}

export interface RunGroup {
  values: unknown[]
  runs?: number
  states?: Record<string, number>
  created_us?: number
  metrics?: Record<string, GroupSpread>
  filter?: string
}

export interface GroupPage {
  groups: RunGroup[]
  total?: number
}

export interface SavedViewRequest {
  name: string
  query: string
  page?: string
  project?: string
  space?: string
  shared?: boolean
  expected?: number | null
}

export interface SavedView {
  id: string
  name: string
  query?: string
  page?: string
  project?: string
  space?: string
  shared?: boolean
  owner?: string
  mine?: boolean
  created_us?: number
  updated_us?: number
  version?: number
}

export interface TemplateRequest {
  text: string
  space?: string
  expected?: number | null
}

export interface TemplateVersionView {
  name: string
  version: number
  space?: string
  description?: string
  digest?: string
  text?: string
  spec?: Record<string, unknown>
  schema?: Record<string, unknown>
  required?: string[]
  locked?: string[]
  created_us?: number
  created_by?: string
  unchanged?: boolean
}

export interface TemplateView {
  name: string
  space: string
  latest: number
  versions?: TemplateVersionView[]
}

export interface FormField {
  field: string
  schema?: Record<string, unknown>
  value?: unknown
  origin?: 'default' | 'file' | 'template'
  default?: string
  required?: boolean
  locked?: boolean
  description?: string
}

export interface FormRequest {
  text?: string
  values?: Record<string, unknown> | null
  space?: string
}

export interface FormView {
  text: string
  values?: Record<string, unknown>
  fields?: FormField[]
  template?: string
  faults?: FaultView[]
}

export interface SpecText {
  text?: string | null
  values?: Record<string, unknown> | null
}

export interface SpecRead {
  text: string
  values: Record<string, unknown>
  spec: Spec
  faults?: FaultView[]
  warnings?: Reason[]
}

export interface TrialRequest {
  steps?: number
  data_bytes?: number
  limit_s?: number
  full_steps?: number
  then_queue?: boolean
}

export interface DataSlice {
  name: string
  files: number
  of_files: number
  size_bytes: number
  of_bytes: number
  cut?: string[]
}

export interface LossTrend {
  key: string
  first: number | string
  last: number | string
  slope?: number
  points?: number
  trend?: 'falling' | 'flat' | 'not_finite' | 'rising'
}

export interface Forecast {
  steps: number
  cards: number
  seconds: number
  seconds_low: number
  seconds_high: number
  card_hours: number
  card_hours_low: number
  card_hours_high: number
  cost?: number | null
  cost_low?: number | null
  cost_high?: number | null
  currency?: string
  how?: Reason[]
}

export interface TrialReport {
  steps?: number
  seconds?: number
  startup_s?: number | null
  steps_per_s?: number | null
  step_seconds?: number[]
  peak_rss_bytes?: number | null
  peak_card_bytes?: number | null
  card_bytes?: number | null
  checkpoint_bytes?: number | null
  loss?: LossTrend | null
  forecast?: Forecast | null
  remarks?: Reason[]
}

export interface TrialView {
  trial_id: string
  trial_ref: string
  state: 'bad' | 'dropped' | 'good' | 'running' | 'waiting'
  runs?: string[]
  run_ids?: string[]
  steps?: number
  data?: DataSlice[]
  then_queue?: boolean
  reason?: Reason | null
  report?: TrialReport | null
}

export interface TriggerRequest {
  name: string
  kind: 'dataset' | 'git' | 'gitea' | 'github' | 'gitlab'
  space?: string
  branch?: string
  dataset?: string
  remote?: string
  status_url?: string
  token_env?: string
  pipeline?: SubmitRequest | null
  version?: number
}

export interface TriggerView {
  id: string
  name: string
  kind: 'dataset' | 'git' | 'gitea' | 'github' | 'gitlab'
  space?: string
  branch?: string
  dataset?: string
  remote?: string
  status_url?: string
  token_env?: string
  registered?: boolean
  owner?: string
  version?: number
  created_us?: number
  hook_url?: string
  secret?: string
}

export interface DeliveryView {
  id: string
  trigger: string
  state: 'done' | 'failed' | 'skipped' | 'started' | 'waiting'
  commit?: string
  branch?: string
  by?: string
  dataset?: string
  run_id?: string
  run?: string
  result?: string
  told?: string
  created_us?: number
}

export interface PushReport {
  commit: string
  tree: TreeFacts
  branch?: string
}

export interface HookReply {
  delivery?: string
  state?: string
  ignored?: string
}

export interface CommitView {
  commit: string
  deliveries?: DeliveryView[]
  runs?: RunView[]
  reviews?: ReviewView[]
}
