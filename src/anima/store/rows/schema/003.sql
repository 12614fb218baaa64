-- Who may come in by a server, and for whom: what the digest of a secret stands for. The application reads nothing of it: it
-- asks the functions below, before a tenant is known by a digest or an id, and afterwards as the tenant it named. Not FORCE:
-- the functions are the owner's, and look in all of it. A file has no such table, hence the block.
do $$ begin
    create table anima.credential(
        tenant bigint not null,
        id text collate "C" not null unique,
        agent text collate "C" not null,
        kind text not null check(kind in ('owner', 'agent', 'page')),
        name text not null,
        scope text,
        sender text,
        access text not null,
        made timestamptz not null default now(),
        expires timestamptz,
        made_by text collate "C",           -- the credential it was made with, and with which it goes
        digest bytea not null unique,
        before bytea unique,                -- the digest it had, which counts until `until`
        until timestamptz,
        primary key(tenant, id));
    create index credential_made_by on anima.credential(tenant, made_by) where made_by is not null;
    alter table anima.credential enable row level security;
end $$;

create function anima.named_tenant() returns bigint language sql stable
    as $$ select nullif(current_setting('app.tenant', true), '')::bigint $$;

create function anima.credential_found(asked bytea, asked_id text) returns table(
    tenant bigint, tenant_name text, is_suspended boolean, id text, agent text, kind text, name text, scope text,
    sender text, access text, made timestamptz, expires timestamptz)
    language sql stable security definer set search_path = anima, pg_temp as $$
    select c.tenant, t.name, t.suspended is not null, c.id, c.agent, c.kind, c.name, c.scope, c.sender, c.access, c.made,
        c.expires
    from anima.credential c join anima.tenant t on t.tenant = c.tenant
    where (c.digest = asked or (c.before = asked and c.until > now()) or c.id = asked_id)
        and (c.expires is null or c.expires > now()) $$;

create function anima.credentials_of(of_agent text) returns table(
    id text, agent text, kind text, name text, scope text, sender text, access text, made timestamptz,
    expires timestamptz)
    language sql stable security definer set search_path = anima, pg_temp as $$
    select c.id, c.agent, c.kind, c.name, c.scope, c.sender, c.access, c.made, c.expires from anima.credential c
    where c.tenant = anima.named_tenant() and c.agent = of_agent and (c.expires is null or c.expires > now())
    order by c.made, c.id $$;

create function anima.credential_add(
    new_id text, of_agent text, new_kind text, new_name text, new_scope text, new_sender text, new_access text,
    new_expires timestamptz, by_id text, new_digest bytea) returns void
    language sql volatile security definer set search_path = anima, pg_temp as $$
    delete from anima.credential c where c.tenant = anima.named_tenant() and c.expires < now();
    insert into anima.credential(tenant, id, agent, kind, name, scope, sender, access, expires, made_by, digest)
    values(anima.named_tenant(), new_id, of_agent, new_kind, new_name, new_scope, new_sender, new_access, new_expires,
        by_id, new_digest) $$;

-- With a credential goes whatever was made with it.
create function anima.credential_drop(asked_id text, of_agent text) returns setof text
    language sql volatile security definer set search_path = anima, pg_temp as $$
    with recursive gone as (
        select c.id from anima.credential c
        where c.tenant = anima.named_tenant() and c.id = asked_id and c.agent = of_agent
        union select c.id from anima.credential c join gone on c.made_by = gone.id
        where c.tenant = anima.named_tenant())
    delete from anima.credential c where c.tenant = anima.named_tenant() and c.id in (select gone.id from gone)
    returning c.id $$;

do $$
declare each text;
begin
    foreach each in array array['credential_found(bytea, text)', 'credentials_of(text)', 'credential_drop(text, text)',
        'credential_add(text, text, text, text, text, text, text, timestamptz, text, bytea)'] loop
        execute format('revoke all on function anima.%s from public', each);
        execute format('grant execute on function anima.%s to anima_app', each);
    end loop;
end $$;
