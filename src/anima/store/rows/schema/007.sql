-- Nothing is kept for a tenant that is erased, whatever a server was about to write just then. What else there is of a home is
-- written with one of these, or under the lock of the home's row. What was there before is not looked at. A file has no
-- tenants, hence the block.
do $$
declare each text;
begin
    foreach each in array array['home', 'file', 'lease', 'made', 'credential', 'quota', 'usage', 'shown', 'waking'] loop
        execute format('alter table anima.%I add foreign key(tenant) references anima.tenant not valid', each);
    end loop;
end $$;
