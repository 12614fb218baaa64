-- When a home is looked at next by whichever server comes first: for nights, rituals and what sessions left. Servers do not
-- see each other's tenants, so functions of the owner's hand the homes out. Not FORCE, for the same reason.
do $$ begin
    create table anima.waking(
        tenant bigint not null,
        agent text collate "C" not null,
        at timestamptz not null,
        primary key(tenant, agent));
    create index waking_at on anima.waking(at);
    alter table anima.waking enable row level security;
end $$;

-- A home of the named tenant is looked at so many seconds from now, or when it was to be, should that be sooner; with
-- `anew`, only then.
create function anima.wake(of_agent text, seconds double precision, anew boolean) returns void
    language sql volatile security definer set search_path = anima, pg_temp as $$
    insert into anima.waking values(anima.named_tenant(), of_agent, now() + seconds * interval '1 second')
    on conflict(tenant, agent) do update
    set at = case when anew then excluded.at else least(waking.at, excluded.at) end $$;

-- Homes whose time has come, for whoever asks; nobody else is given them for so many seconds.
create function anima.woken(most integer, seconds double precision) returns table(
    tenant bigint, tenant_name text, agent text)
    language sql volatile security definer set search_path = anima, pg_temp as $$
    with due as (
        select w.tenant, w.agent, t.name from anima.waking w join anima.tenant t on t.tenant = w.tenant
        where w.at <= now() and t.suspended is null order by w.at limit most for update of w skip locked)
    update anima.waking w set at = now() + seconds * interval '1 second' from due
    where w.tenant = due.tenant and w.agent = due.agent returning w.tenant, due.name, w.agent $$;

revoke all on function anima.wake, anima.woken from public;
grant execute on function anima.wake, anima.woken to anima_app;
