import { Button, Checkbox, Modal, NumberInput } from '@mantine/core'
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { send } from '@/api/client'
import { me, store as storeQuery } from '@/api/queries'
import type { GcState, StoreSettings, StoreView } from '@/api/types'
import { known, sentence } from '@/i18n'
import { duration, size } from '@/lib/format'
import { Async, ErrorNote, Facts, Panel } from '@/ui/Blocks'
import { Ago } from '@/ui/Time'

const HOUR_S = 3600
const GIB = 2 ** 30
/** What the wire leaves out is as the server has it by default. */
const DEFAULTS: StoreSettings = { gc_every_s: 24 * HOUR_S, gc_grace_s: 24 * HOUR_S, low_water_h: 24 }

/** Where the bytes lie, how long the room lasts, and what collecting did and will do. */
export function Store() {
  const { t } = useTranslation()
  const query = useQuery(storeQuery)
  const who = useQuery(me)
  const [changing, setChanging] = useState(false)
  return (
    <Panel
      title={t('store')}
      actions={
        who.data?.admin &&
        query.data && (
          <Button variant="default" onClick={() => setChanging(true)}>
            {t('store_change')}
          </Button>
        )
      }
    >
      <Async query={query}>
        {(store) => (
          <>
            <Told store={store} />
            {changing && <Change was={store.settings ?? {}} onClose={() => setChanging(false)} />}
          </>
        )}
      </Async>
    </Panel>
  )
}

function Told({ store }: { store: StoreView }) {
  const { t } = useTranslation()
  const { gc = {}, settings = {} } = store
  return (
    <>
      {store.low && (
        <p role="status" style={{ margin: '0 0 12px', color: 'var(--tone-red)' }}>
          {t('store_low')}
        </p>
      )}
      <Facts
        rows={[
          [
            t('address'),
            <span key="u" className="mono">
              {store.url}
            </span>,
          ],
          [t('store_sealed'), store.sealed && t('yes')],
          [t('store_stored'), size(store.stored_bytes ?? 0)],
          [
            t('store_free'),
            typeof store.free_bytes === 'number' &&
              t('store_of', { free: size(store.free_bytes), total: size(store.total_bytes ?? 0) }),
          ],
          [
            t('store_growth'),
            typeof store.growth_bytes_per_h === 'number' &&
              t('store_growth_h', { size: size(Math.round(store.growth_bytes_per_h)) }),
          ],
          [t('store_hours_left'), typeof store.hours_left === 'number' && duration(store.hours_left * HOUR_S)],
          [
            t('store_to_free'),
            store.checkpoints_to_free
              ? t('store_to_free_n', { count: store.checkpoints_to_free, size: size(store.bytes_to_free ?? 0) })
              : undefined,
          ],
          [t('gc_last'), gc.last_us ? <LastCollected key="l" gc={gc} /> : undefined],
          [t('gc_failed'), gc.failed && (known(gc.failed) ? sentence(gc.failed) : gc.why || gc.failed)],
          [
            t('gc_next'),
            settings.gc_every_s === 0 ? t('gc_never') : gc.next_us ? <Ago key="n" us={gc.next_us} /> : undefined,
          ],
        ]}
      />
    </>
  )
}

function LastCollected({ gc }: { gc: GcState }) {
  const { t } = useTranslation()
  const freed = size(gc.report?.bytes_freed ?? 0)
  return (
    <>
      <Ago us={gc.last_us} />
      {gc.report && ` · ${t(gc.report.dry_run ? 'gc_would' : 'gc_freed', { size: freed })}`}
    </>
  )
}

function Change({ was, onClose }: { was: StoreSettings; onClose: () => void }) {
  const { t } = useTranslation()
  const client = useQueryClient()
  const [asked, setAsked] = useState({ ...DEFAULTS, ...was })
  const save = useMutation({
    mutationFn: () => send<StoreSettings>('PUT', '/store/settings', asked),
    onSuccess: async () => {
      await client.invalidateQueries({ queryKey: storeQuery.queryKey })
      onClose()
    },
  })
  const amount = (
    field: 'gc_every_s' | 'gc_grace_s' | 'low_water_h' | 'capacity_bytes',
    label: string,
    unit: number,
  ) => (
    <NumberInput
      label={label}
      min={0}
      value={Math.round(((asked[field] ?? 0) / unit) * 100) / 100}
      onChange={(value) => setAsked({ ...asked, [field]: Math.round(Number(value) * unit) })}
    />
  )
  return (
    <Modal opened onClose={onClose} title={t('store')}>
      <form
        style={{ display: 'grid', gap: 12 }}
        onSubmit={(event) => {
          event.preventDefault()
          save.mutate()
        }}
      >
        {amount('gc_every_s', t('store_gc_every'), HOUR_S)}
        {amount('gc_grace_s', t('store_gc_grace'), HOUR_S)}
        {amount('low_water_h', t('store_low_water'), 1)}
        {amount('capacity_bytes', t('store_capacity'), GIB)}
        <Checkbox
          label={t('store_gc_dry')}
          checked={asked.gc_dry_run ?? false}
          onChange={(event) => setAsked({ ...asked, gc_dry_run: event.currentTarget.checked })}
        />
        {save.error && <ErrorNote error={save.error} />}
        <Button type="submit" loading={save.isPending}>
          {t('save')}
        </Button>
      </form>
    </Modal>
  )
}
