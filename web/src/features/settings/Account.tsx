import { Button } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useTranslation } from 'react-i18next'
import { me, status } from '@/api/queries'
import { useSignOut } from '@/api/session'
import { sentence, word } from '@/i18n'
import { Facts, Panel } from '@/ui/Blocks'
import { Ago } from '@/ui/Time'

export function Account() {
  const { t } = useTranslation()
  const { data } = useQuery(me)
  const signOut = useSignOut()
  return (
    <Panel
      title={t('account')}
      actions={
        <Button variant="default" onClick={signOut}>
          {t('sign_out')}
        </Button>
      }
    >
      <Facts
        rows={[
          [t('name'), data?.name],
          [t('role_installation'), data?.admin && t('admin')],
          ...Object.entries(data?.roles ?? {}).map(
            ([space, role]) => [`${t('space')} ${space}`, word('role', role)] as [string, string],
          ),
        ]}
      />
    </Panel>
  )
}

export function Server() {
  const { t } = useTranslation()
  const { data } = useQuery(status)
  if (!data) return null
  return (
    <Panel title={t('server')}>
      <Facts
        rows={[
          [t('version'), data.version],
          [
            t('licences'),
            <a key="n" href="/licences.txt">
              {t('licences_of')}
            </a>,
          ],
          [t('address'), data.url],
          [t('running_since'), data.started_us ? <Ago key="s" us={data.started_us} /> : undefined],
          [
            t('lane_wait'),
            <span key="l" className="num">
              {(data.lane_wait_p99_ms ?? 0).toFixed(1)} ms
            </span>,
          ],
          ...(data.warnings ?? []).map(
            (warning) => [t('warning'), sentence(`reason.${warning.code}`, warning.params)] as [string, string],
          ),
        ]}
      />
    </Panel>
  )
}
