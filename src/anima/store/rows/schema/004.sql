-- What a tenant may have and do, and what it did on each day (UTC); and which proposals a page showed whole, which any server
-- may be asked about. A file has no tenants, hence the block.
do $$
declare each text;
begin
    create table anima.quota(
        tenant bigint not null,
        kind text collate "C" not null check(kind in ('bytes', 'documents', 'requests', 'tokens')),
        most bigint not null,
        primary key(tenant, kind));
    create table anima.usage(
        tenant bigint not null,
        day date not null default (now() at time zone 'utc')::date,
        kind text collate "C" not null,
        amount bigint not null,
        primary key(tenant, day, kind));
    create table anima.shown(
        tenant bigint not null,
        pass text collate "C" not null,
        face text collate "C" not null,
        time timestamptz not null default now(),
        primary key(tenant, pass, face));
    foreach each in array array['quota', 'usage', 'shown'] loop
        execute format('alter table anima.%I enable row level security', each);
        execute format('alter table anima.%I force row level security', each);
        execute format('create policy own on anima.%I using (tenant = anima.named_tenant())', each);
    end loop;
    grant select on anima.quota to anima_app;
    grant select, insert, update on anima.usage to anima_app;
    grant select, insert, delete on anima.shown to anima_app;
end $$;

-- How much of a kind the named tenant has; of requests and tokens, today. Bytes are of files, ledgers and history.
create function anima.used(asked text) returns bigint language sql stable as $$
    select case asked
        when 'documents' then (select count(*) from anima.file f where f.tenant = anima.named_tenant() and f.is_document)
        when 'bytes' then (select coalesce(sum(f.size), 0) from anima.file f where f.tenant = anima.named_tenant())
            + (select coalesce(sum(h.bytes), 0) from anima.home h where h.tenant = anima.named_tenant())
            + (select coalesce(sum(pg_column_size(v.body)), 0) from anima.version v where v.tenant = anima.named_tenant())
        else coalesce((select u.amount from anima.usage u where u.tenant = anima.named_tenant() and u.kind = asked
            and u.day = (now() at time zone 'utc')::date), 0) end::bigint $$;
grant execute on function anima.used, anima.named_tenant to anima_app;
