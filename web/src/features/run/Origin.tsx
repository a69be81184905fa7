import { useTranslation } from 'react-i18next'
import type { OriginView } from '@/api/types'
import { Facts, Panel } from '@/ui/Blocks'
import { Ago } from '@/ui/Time'

/** Where an imported run was made, and who brought it here. */
export function Origin({ origin }: { origin: OriginView | null | undefined }) {
  const { t } = useTranslation()
  if (!origin) return null
  return (
    <Panel title={t('imported')}>
      <Facts
        rows={[
          [t('imported_from'), <Mono key="i">{origin.installation}</Mono>],
          [t('imported_as'), `${origin.ref} (${origin.id})`],
          [t('col_owner'), origin.owner],
          [t('imported_by'), origin.imported_by],
          [t('imported_at'), origin.imported_us ? <Ago key="a" us={origin.imported_us} /> : undefined],
          [t('imported_bundle'), origin.bundle && <Mono key="b">{origin.bundle}</Mono>],
        ]}
      />
    </Panel>
  )
}

function Mono({ children }: { children: string }) {
  return <span className="mono">{children}</span>
}
